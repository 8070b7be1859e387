! SPDX-License-Identifier: GPL-2.0
!
! What libcr/fortran/kcr.f90 offers; see check.h for the protocol of READY and
! GO.  Saves itself to `image` in the middle of a sum and tells what happened.
!
program binding
    use kcr
    implicit none
    character(len=1000) :: ready, go
    real(8), allocatable :: series(:)
    logical :: restarted, there
    integer :: i, unit

    call get_command_argument(1, ready)
    call get_command_argument(2, go)
    call expect(kcr_init(), 0, "kcr_init")
    call expect(kcr_leave(), 22, "kcr_leave outside")
    call expect(kcr_enter(), 0, "kcr_enter")
    call expect(kcr_enter(), 0, "kcr_enter again")
    call expect(kcr_leave(), 0, "kcr_leave")
    call expect(kcr_leave(), 0, "kcr_leave again")
    call expect(kcr_save("nowhere/image", restarted), 2, "kcr_save without a folder")
    if (kcr_message(2) /= "No such file or directory") error stop "kcr_message"
    if (len(kcr_message(KCR_ERESTARTED)) < 5) error stop "kcr_message of ours"

    series = [(1d0 / i, i = 1, 100000)]
    call expect(kcr_save("image", restarted), 0, "kcr_save")
    inquire(file="image.new", exist=there)
    if (there) error stop "image.new is there"
    open(newunit=unit, file="log", position="append")
    if (restarted) then
        write(unit, "(a)") "restarted"
    else
        write(unit, "(a)") "saved"
    end if
    close(unit)
    if (.not. restarted) then
        open(newunit=unit, file=trim(ready))
        close(unit)
    end if
    there = .false.
    do while (.not. there)
        call sleep(1)
        inquire(file=trim(go), exist=there)
    end do
    if (abs(sum(series) - 12.090146129863d0) > 1d-9) error stop "the sum"
    call expect(kcr_enter(), 0, "kcr_enter at last")
    call expect(kcr_leave(), 0, "kcr_leave at last")

contains

    subroutine expect(result, wanted, what)
        integer, intent(in) :: result, wanted
        character(len=*), intent(in) :: what

        if (result == wanted) return
        print *, what, result, kcr_message(result)
        error stop "not as expected"
    end subroutine
end program
