! SPDX-License-Identifier: LGPL-2.1-or-later
!
! Checkpoint and restart from Fortran: the calls of libcr(3) that numerical
! codes use.  Compile this file with the program and link with -lcr:
!
!    gfortran -o program kcr.f90 program.f90 -lcr
!
! Every function returns a default integer: 0 for success, else an error
! number, described by kcr_message().  They may be called by any thread.
!
module kcr
    use, intrinsic :: iso_c_binding
    implicit none
    private
    public :: kcr_init, kcr_enter, kcr_leave, kcr_save, kcr_message

    integer, parameter, public :: KCR_ETEMPFAIL = 2354, KCR_EPERMFAIL = 2355, &
        KCR_EOMITTED = 2358, KCR_ERESTARTED = 2363, KCR_ENOINIT = 2365

    integer(c_int), parameter :: scope_proc = 0, poll_error_pre = -1
    integer(c_int), parameter :: eintr = 4, owner_only = int(o'600', c_int)

    ! cr_checkpoint_args_t
    type, bind(c) :: checkpoint_args
        integer(c_int) :: version, scope, target, fd, signal, timeout, flags
    end type

    interface
        integer(c_int) function c_init() bind(c, name="cr_init")
            import :: c_int
        end function

        integer(c_int) function c_enter(id) bind(c, name="cr_enter_cs")
            import :: c_int
            integer(c_int), value :: id
        end function

        integer(c_int) function c_leave(id) bind(c, name="cr_leave_cs")
            import :: c_int
            integer(c_int), value :: id
        end function

        integer(c_int) function c_init_args(version, args) &
                bind(c, name="cri_init_checkpoint_args_t")
            import :: c_int, checkpoint_args
            integer(c_int), value :: version
            type(checkpoint_args), intent(out) :: args
        end function

        integer(c_int) function c_request(args, handle) &
                bind(c, name="cr_request_checkpoint")
            import :: c_int, c_long, checkpoint_args
            type(checkpoint_args), intent(in) :: args
            integer(c_long), intent(out) :: handle
        end function

        integer(c_int) function c_poll(handle, timeout) bind(c, name="cr_poll_checkpoint")
            import :: c_int, c_long, c_ptr
            integer(c_long), intent(in) :: handle
            type(c_ptr), value :: timeout
        end function

        type(c_ptr) function c_message(number) bind(c, name="cr_strerror")
            import :: c_int, c_ptr
            integer(c_int), value :: number
        end function

        type(c_ptr) function c_errno() bind(c, name="__errno_location")
            import :: c_ptr
        end function

        integer(c_int) function c_creat(path, mode) bind(c, name="creat")
            import :: c_char, c_int
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int), value :: mode
        end function

        integer(c_int) function c_close(fd) bind(c, name="close")
            import :: c_int
            integer(c_int), value :: fd
        end function

        integer(c_int) function c_rename(old, new) bind(c, name="rename")
            import :: c_char, c_int
            character(kind=c_char), intent(in) :: old(*), new(*)
        end function

        integer(c_int) function c_unlink(path) bind(c, name="unlink")
            import :: c_char, c_int
            character(kind=c_char), intent(in) :: path(*)
        end function

        integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
        end function
    end interface

contains

    ! The errno of the call that just failed.
    integer function last_error()
        integer(c_int), pointer :: number

        call c_f_pointer(c_errno(), number)
        last_error = number
    end function

    integer function outcome(result)
        integer(c_int), intent(in) :: result

        outcome = 0
        if (result < 0) outcome = last_error()
    end function

    ! Makes the calling thread known to libcr.  The other functions do so as
    ! needed; calling it early shows whether checkpointing is available at all.
    integer function kcr_init()
        kcr_init = outcome(c_init())
    end function

    ! Begins a critical section: until kcr_leave() no checkpoint happens.
    ! Sections nest.  Waits while a checkpoint is pending.
    integer function kcr_enter()
        integer(c_int) :: id

        id = c_init()
        kcr_enter = outcome(id)
        if (kcr_enter == 0) kcr_enter = outcome(c_enter(id))
    end function

    ! Ends a critical section; a pending checkpoint happens before this returns.
    integer function kcr_leave()
        integer(c_int) :: id

        id = c_init()
        kcr_leave = outcome(id)
        if (kcr_leave == 0) kcr_leave = outcome(c_leave(id))
    end function

    ! Saves the calling process in a file, which is replaced only on
    ! success; not from within a critical section.  Returns, with 0, when
    ! the program goes on (restarted is .false.), and again in every program
    ! restarted from the file (.true.).
    integer function kcr_save(file, restarted)
        character(len=*), intent(in) :: file
        logical, intent(out) :: restarted
        character(kind=c_char, len=:), allocatable :: path, new

        restarted = .false.
        path = trim(file) // c_null_char
        new = trim(file) // ".new" // c_null_char
        kcr_save = save_to(new)
        if (kcr_save == 0) then
            kcr_save = outcome(c_rename(new, path))
        else if (kcr_save == KCR_ERESTARTED) then
            restarted = .true.
            kcr_save = 0
        end if
    end function

    integer function save_to(path)
        character(kind=c_char, len=*), intent(in) :: path
        integer(c_long) :: handle
        integer(c_int) :: fd, result

        fd = c_creat(path, owner_only)
        save_to = outcome(fd)
        if (save_to /= 0) return
        ! The file is closed when the checkpoint happens, so that a restart
        ! does not need it.
        save_to = kcr_enter()
        if (save_to == 0) then
            save_to = request(fd, handle)
            result = c_close(fd)
            result = kcr_leave()
            if (save_to == 0) save_to = wait_for(handle)
        else
            result = c_close(fd)
        end if
        if (save_to /= 0 .and. save_to /= KCR_ERESTARTED) result = c_unlink(path)
    end function

    integer function request(fd, handle)
        integer(c_int), intent(in) :: fd
        integer(c_long), intent(out) :: handle
        type(checkpoint_args) :: args

        request = outcome(c_init_args(1_c_int, args))
        args%scope = scope_proc
        args%fd = fd
        if (request == 0) request = outcome(c_request(args, handle))
    end function

    integer function wait_for(handle)
        integer(c_long), intent(in) :: handle
        integer(c_int) :: result

        do
            result = c_poll(handle, c_null_ptr)
            wait_for = outcome(result)
            if (result /= poll_error_pre .or. wait_for /= eintr) exit
        end do
    end function

    ! The text for an error number.
    function kcr_message(number) result(text)
        integer, intent(in) :: number
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: letter(:)
        type(c_ptr) :: message
        integer :: i

        message = c_message(int(number, c_int))
        call c_f_pointer(message, letter, [c_strlen(message)])
        allocate(character(len=size(letter)) :: text)
        do i = 1, size(letter)
            text(i:i) = letter(i)
        end do
    end function
end module
