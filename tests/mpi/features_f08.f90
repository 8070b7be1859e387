! SPDX-License-Identifier: GPL-2.0
! features_f08 ROUNDS [pause]: the Fortran 2008 bindings.  In each round requests of all kinds are
! pending when the ranks pause, with `pause` until there is a file go.ROUND; types, operators,
! attributes and communicators are handles of the bindings' own kinds, made before.  Rank 0 prints
! "result ROUND ok", or "wrong".
module callbacks
  use mpi_f08
  use iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer :: copies = 0, handled = 0

contains

  ! a then b: the last digits of b, behind those of a; the order counts.
  subroutine append(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)

    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    if (datatype == MPI_INTEGER) b = mod(a, 10000) * 10 + mod(b, 10)
  end subroutine

  subroutine copy(comm, keyval, extra, in, out, flag, ierror)
    type(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra, in, out
    logical :: flag

    out = in + extra
    flag = comm /= MPI_COMM_NULL .and. keyval /= MPI_KEYVAL_INVALID
    copies = copies + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine handle(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code

    if (comm /= MPI_COMM_NULL .and. error_code /= MPI_SUCCESS) handled = handled + 1
  end subroutine
end module

program features_f08
  use mpi_f08
  use callbacks
  implicit none
  integer, parameter :: large = 30000
  integer :: rounds, round, rank, ranks, next, previous, key, wrong, all, total
  integer, asynchronous, allocatable :: out(:), in(:), kept(:), cast(:), grid(:, :), block(:, :)
  integer, allocatable :: expected(:, :)
  integer, asynchronous :: appended, digit
  type(MPI_Comm) :: work, twin
  type(MPI_Datatype) :: part
  type(MPI_Op) :: op
  type(MPI_Errhandler) :: handler
  type(MPI_Request) :: request(6)
  logical :: wait
  character(len=32) :: word

  call MPI_Init()
  call MPI_Comm_dup(MPI_COMM_WORLD, work)
  call MPI_Comm_rank(work, rank)
  call MPI_Comm_size(work, ranks)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call get_command_argument(1, word)
  read (word, *) rounds
  call get_command_argument(2, word)
  wait = word == 'pause'
  allocate (out(large), in(large), kept(large), cast(large), grid(200, 200), block(200, 200))
  call MPI_Type_create_subarray(2, [200, 200], [100, 150], [50, 7], MPI_ORDER_FORTRAN, MPI_INTEGER, part)
  call MPI_Type_commit(part)
  call MPI_Op_create(append, .false., op)
  call MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, key, 1000_MPI_ADDRESS_KIND)
  call MPI_Comm_create_errhandler(handle, handler)
  call MPI_Comm_set_errhandler(work, handler)
  call MPI_Send_init(out, large, MPI_INTEGER, next, 2, work, request(6))

  total = 0
  do round = 1, rounds
    wrong = 0
    call begin()
    call pause_here()
    call finish()
    call MPI_Reduce(wrong, all, 1, MPI_INTEGER, MPI_SUM, 0, work)
    if (rank == 0) then
      total = total + all
      write (*, '(a,i0,1x,a)') 'result ', round, trim(merge('ok   ', 'wrong', all == 0))
      flush (6)
    end if
  end do
  if (rank == 0) write (*, '(a,i0,a,i0,a)') 'features: ', rounds, ' rounds of 1, ', total, ' wrong'
  call MPI_Request_free(request(6))
  call MPI_Errhandler_free(handler)
  call MPI_Comm_free_keyval(key)
  call MPI_Op_free(op)
  call MPI_Type_free(part)
  call MPI_Comm_free(work)
  call MPI_Finalize()

contains

  integer function seed(from)
    integer, intent(in) :: from

    seed = round * 1000000 + from * 100000
  end function

  subroutine expect(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what

    if (right) return
    write (*, '(a,i0,3a)') 'rank ', rank, ': ', what, ' is wrong'
    wrong = wrong + 1
  end subroutine

  ! One rank joins the collective operations only behind the pause.
  subroutine join()
    call MPI_Ibcast(cast, large, MPI_INTEGER, 0, work, request(3))
    call MPI_Iallreduce(digit, appended, 1, MPI_INTEGER, op, work, request(4))
  end subroutine

  subroutine begin()
    integer :: i

    out = [(seed(rank) + i, i=1, large)]
    grid = reshape([(seed(rank) + i, i=1, 40000)], [200, 200])
    block = 0
    cast = 0
    if (rank == 0) cast = out
    digit = rank + 1
    call MPI_Isend(grid, 1, part, next, 1, work, request(1))
    call MPI_Irecv(kept, large, MPI_INTEGER, previous, 2, work, request(2))
    call MPI_Issend(out, 10, MPI_INTEGER, next, 3, work, request(5))
    call MPI_Start(request(6))
    call MPI_Comm_set_attr(work, key, int(round, MPI_ADDRESS_KIND))
    if (rank /= mod(round, ranks)) call join()
  end subroutine

  subroutine pause_here()
    logical :: there
    character(len=32) :: name

    if (.not. wait) return
    if (rank == 0) then
      write (*, '(a,i0)') 'paused ', round
      flush (6)
    end if
    write (name, '(a,i0)') 'go.', round
    there = .false.
    do while (.not. there)
      inquire (file=name, exist=there)
    end do
  end subroutine

  subroutine finish()
    type(MPI_Status) :: status
    integer :: i, count, sum_of_ranks, error
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag

    call MPI_Recv(block, 1, part, previous, 1, work, status)
    call expect(status%MPI_SOURCE == previous .and. status%MPI_TAG == 1, 'the status')
    call MPI_Get_elements(status, MPI_INTEGER, count)
    expected = reshape([(seed(previous) + i, i=1, 40000)], [200, 200])
    call expect(count == 15000, 'the length')
    call expect(.not. any(block(51:150, 8:157) /= expected(51:150, 8:157)), 'the block')
    call expect(sum(merge(1, 0, block /= 0)) == 15000, 'what is around it')
    call MPI_Recv(in, 10, MPI_INTEGER, previous, 3, work, MPI_STATUS_IGNORE)
    if (rank == mod(round, ranks)) call join()
    call MPI_Waitall(6, request, MPI_STATUSES_IGNORE)
    call expect(kept(large) == seed(previous) + large .and. kept(1) == seed(previous) + 1, 'the message')
    call expect(cast(large) == seed(0) + large, 'what was cast')
    sum_of_ranks = 1
    do i = 2, ranks
      sum_of_ranks = mod(sum_of_ranks, 10000) * 10 + i
    end do
    call expect(appended == sum_of_ranks, 'the order')
    call MPI_Comm_dup(work, twin)
    call MPI_Comm_get_attr(twin, key, value, flag)
    call expect(flag .and. value == round + 1000, 'the attribute')
    call MPI_Comm_free(twin)
    count = handled
    call MPI_Send(in, 1, MPI_INTEGER, ranks + 1, 1, work, error)
    call expect(handled == count + 1 .and. error /= MPI_SUCCESS, 'the error')
  end subroutine
end program
