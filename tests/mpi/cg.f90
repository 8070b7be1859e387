! SPDX-License-Identifier: GPL-2.0
! cg N [TIMES]: the conjugate gradient method for the Laplacian of a square of
! N x N unknowns, spread over the ranks by lines.  Neighbours exchange their
! border lines without blocking, the sums are reduced over all.  Each of the TIMES
! has another right side.  Rank 0 prints the numbers of iterations, the bits of the
! residual and of a sum over the solution: not one bit may differ between two runs
! of as many ranks.
program cg
  use mpi
  use iso_fortran_env, only: int64, real64, error_unit
  implicit none

  integer :: n, times, rank, ranks, lines, up, down, ierr, step, iterations
  real(real64), allocatable :: x(:, :), r(:, :), p(:, :), q(:, :)
  real(real64) :: residual, total
  character(len=32) :: word

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  times = 1
  call get_command_argument(1, word)
  read (word, *) n
  if (command_argument_count() > 1) then
    call get_command_argument(2, word)
    read (word, *) times
  end if
  lines = n / ranks
  if (rank < mod(n, ranks)) lines = lines + 1
  up = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  down = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  allocate (x(n, lines), r(n, lines), q(n, lines), p(0:n + 1, 0:lines + 1))

  do step = 1, times
    call solve(step, iterations, residual)
    total = dot(x, x)
    if (rank == 0) then
      if (step == 1) write (error_unit, '(a)') 'running'
      write (*, '(a,i0,1x,i0,1x,z16.16,1x,z16.16)') 'result ', step, iterations, &
        transfer(residual, 0_int64), transfer(total, 0_int64)
      flush (6)
    end if
  end do
  call MPI_Finalize(ierr)

contains

  real(real64) function dot(a, b)
    real(real64), intent(in) :: a(n, lines), b(n, lines)
    real(real64) :: mine

    mine = sum(a * b)
    call MPI_Allreduce(mine, dot, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  end function

  subroutine exchange()
    integer :: request(4)

    call MPI_Irecv(p(1, 0), n, MPI_DOUBLE_PRECISION, up, 1, MPI_COMM_WORLD, request(1), ierr)
    call MPI_Irecv(p(1, lines + 1), n, MPI_DOUBLE_PRECISION, down, 2, MPI_COMM_WORLD, &
      request(2), ierr)
    call MPI_Isend(p(1, lines), n, MPI_DOUBLE_PRECISION, down, 1, MPI_COMM_WORLD, &
      request(3), ierr)
    call MPI_Isend(p(1, 1), n, MPI_DOUBLE_PRECISION, up, 2, MPI_COMM_WORLD, request(4), ierr)
    call MPI_Waitall(4, request, MPI_STATUSES_IGNORE, ierr)
  end subroutine

  subroutine solve(seed, count, rho)
    integer, intent(in) :: seed
    integer, intent(out) :: count
    real(real64), intent(out) :: rho
    real(real64) :: first, old, alpha
    integer :: i, j

    x = 0
    p = 0
    do j = 1, lines
      do i = 1, n
        r(i, j) = 1 + mod(i * (seed + 6) + (rank + j) * 31, 17) / 16d0
      end do
    end do
    p(1:n, 1:lines) = r
    rho = dot(r, r)
    first = rho
    count = 0
    do while (rho > 1d-20 * first .and. count < 10 * n)
      call exchange()
      q = 4 * p(1:n, 1:lines) - p(0:n - 1, 1:lines) - p(2:n + 1, 1:lines) &
        - p(1:n, 0:lines - 1) - p(1:n, 2:lines + 1)
      alpha = rho / dot(p(1:n, 1:lines), q)
      x = x + alpha * p(1:n, 1:lines)
      r = r - alpha * q
      old = rho
      rho = dot(r, r)
      p(1:n, 1:lines) = r + rho / old * p(1:n, 1:lines)
      count = count + 1
    end do
  end subroutine
end program
