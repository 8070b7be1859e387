! SPDX-License-Identifier: GPL-2.0
! Fortran with arrays, formatted output to a file and allocatable memory; see
! check.h for the protocol of READY and GO.
program smoke
	implicit none
	character(len=512) :: ready, go, line
	real(8), allocatable :: x(:), y(:)
	integer :: i, total
	logical :: there

	call get_command_argument(1, ready)
	call get_command_argument(2, go)
	allocate(x(100000), y(100000))
	do i = 1, 100000
		x(i) = sin(real(i, 8))
	end do
	open(unit=11, status='scratch', action='readwrite')
	write(11, '(a,i0)') 'line ', 1
	open(unit=12, file=trim(ready), status='replace')
	close(12)
	do
		inquire(file=trim(go), exist=there)
		if (there) exit
		call sleep(1)
	end do
	write(11, '(a,i0)') 'line ', 2
	rewind(11)
	total = 0
	do i = 1, 2
		read(11, '(a)') line
		if (line(1:5) == 'line ') total = total + 1
	end do
	do i = 1, 100000
		y(i) = sin(real(i, 8))
	end do
	if (total /= 2 .or. any(x /= y)) stop 1
end program smoke
