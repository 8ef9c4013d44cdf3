! numaopt.f90: numaopt.h for Fortran 2008. Compile it with the program (a .mod file
! belongs to one version of one compiler) and link with -lnumaopt-api:
!
!     gfortran -fopenmp PREFIX/include/numaopt.f90 app.f90 -L PREFIX/lib -lnumaopt-api -Wl,-rpath,PREFIX/lib
!
! numaopt.h is the manual; what differs:
!  - nx is the extent of the slowest dimension, an array's LAST one in Fortran:
!    u(nz, ny, nx). Elements may be several numbers, u(m, nz, ny, nx) with
!    elem = m times the size of one.
!  - loops have 1-based indices and inclusive bounds, as do loops have here; an
!    array with another lower bound is to be shifted by the caller. Threads, phases
!    and nodes begin with 0, as in OpenMP.
!  - numaopt_allocate gives an array of 8-byte reals, of rank 1 to 4, with d%padded as
!    its dimensions; numaopt_alloc a c_ptr, for other types and c_f_pointer.
module numaopt
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: numaopt_dist, numaopt_report, numaopt_nodes, numaopt_node, numaopt_home
  public :: numaopt_bind, numaopt_interleave, numaopt_weighted_interleave, numaopt_block_cyclic
  public :: numaopt_x_wise, numaopt_y_wise, numaopt_z_wise, numaopt_block_exclusive, numaopt_custom
  public :: numaopt_owner, numaopt_examine, numaopt_distribute_to, numaopt_alloc, numaopt_free, numaopt_allocate
  public :: numaopt_static, numaopt_static_inverse, numaopt_phases, numaopt_phase, numaopt_part, numaopt_text

  integer(c_int), parameter, public :: NUMAOPT_X = 0, NUMAOPT_Y = 1, NUMAOPT_Z = 2
  integer(c_int), parameter, public :: NUMAOPT_NONE = 0
  integer, parameter :: max_nodes = 64

  type, bind(c) :: numaopt_dist
    integer(c_int) :: kind, nodes, first, axis(2)
    integer(c_size_t) :: bytes, elem, extent(3), padded(3), length(2), block
    integer(c_signed_char) :: weight(max_nodes)
    type(c_funptr) :: owner
    type(c_ptr) :: arg, why
  end type

  type, bind(c) :: numaopt_report
    integer(c_size_t) :: pages, touched, on_target, moved, ranges, lost
    real(c_double) :: loss, imbalance
    integer(c_int) :: error
    type(c_ptr) :: note
  end type

  interface
    integer(c_int) function numaopt_nodes() bind(c)
      import :: c_int
    end function
    integer(c_int) function numaopt_node() bind(c)
      import :: c_int
    end function
    integer(c_int) function numaopt_home(p) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: p
    end function

    type(numaopt_dist) function numaopt_bind(bytes, node) bind(c)
      import :: numaopt_dist, c_size_t, c_int
      integer(c_size_t), value :: bytes
      integer(c_int), value :: node
    end function
    type(numaopt_dist) function numaopt_interleave(bytes) bind(c)
      import :: numaopt_dist, c_size_t
      integer(c_size_t), value :: bytes
    end function
    type(numaopt_dist) function numaopt_weighted_interleave(bytes, weight, n) bind(c)
      import :: numaopt_dist, c_size_t, c_int
      integer(c_size_t), value :: bytes
      integer(c_int), intent(in) :: weight(*)
      integer(c_int), value :: n
    end function
    type(numaopt_dist) function numaopt_block_cyclic(bytes, block) bind(c)
      import :: numaopt_dist, c_size_t
      integer(c_size_t), value :: bytes, block
    end function
    type(numaopt_dist) function numaopt_x_wise(nx, ny, nz, elem) bind(c)
      import :: numaopt_dist, c_size_t
      integer(c_size_t), value :: nx, ny, nz, elem
    end function
    type(numaopt_dist) function numaopt_y_wise(nx, ny, nz, elem) bind(c)
      import :: numaopt_dist, c_size_t
      integer(c_size_t), value :: nx, ny, nz, elem
    end function
    type(numaopt_dist) function numaopt_z_wise(nx, ny, nz, elem) bind(c)
      import :: numaopt_dist, c_size_t
      integer(c_size_t), value :: nx, ny, nz, elem
    end function
    type(numaopt_dist) function numaopt_block_exclusive(nx, ny, nz, elem, a, b) bind(c)
      import :: numaopt_dist, c_size_t, c_int
      integer(c_size_t), value :: nx, ny, nz, elem
      integer(c_int), value :: a, b
    end function
    ! owner: a function of (type(c_ptr), value :: arg; integer(c_size_t), value ::
    ! offset), bind(c), that returns integer(c_int).
    type(numaopt_dist) function numaopt_custom(bytes, block, owner, arg) bind(c)
      import :: numaopt_dist, c_size_t, c_funptr, c_ptr
      integer(c_size_t), value :: bytes, block
      type(c_funptr), value :: owner
      type(c_ptr), value :: arg
    end function
    integer(c_int) function numaopt_owner(d, offset) bind(c)
      import :: numaopt_dist, c_size_t, c_int
      type(numaopt_dist), intent(in) :: d
      integer(c_size_t), value :: offset
    end function

    subroutine numaopt_examine(d, report) bind(c)
      import :: numaopt_dist, numaopt_report
      type(numaopt_dist), intent(in) :: d
      type(numaopt_report), intent(out) :: report
    end subroutine
    integer(c_int) function numaopt_distribute_to(p, bytes, d, report) bind(c)
      import :: numaopt_dist, numaopt_report, c_size_t, c_int, c_ptr
      type(c_ptr), value :: p
      integer(c_size_t), value :: bytes
      type(numaopt_dist), intent(in) :: d
      type(numaopt_report), intent(out) :: report
    end function
    type(c_ptr) function numaopt_alloc(d, report) bind(c)
      import :: numaopt_dist, numaopt_report, c_ptr
      type(numaopt_dist), intent(inout) :: d
      type(numaopt_report), intent(out) :: report
    end function
    subroutine numaopt_free(p, d) bind(c)
      import :: numaopt_dist, c_ptr
      type(c_ptr), value :: p
      type(numaopt_dist), intent(in) :: d
    end subroutine
    integer(c_int) function numaopt_phases(d) bind(c)
      import :: numaopt_dist, c_int
      type(numaopt_dist), intent(in) :: d
    end function

    subroutine c_static(lo, hi, thread, threads, first, last) bind(c, name="numaopt_static")
      import :: c_long, c_int
      integer(c_long), value :: lo, hi
      integer(c_int), value :: thread, threads
      integer(c_long), intent(out) :: first, last
    end subroutine
    subroutine c_static_inverse(lo, hi, thread, threads, first, last) bind(c, name="numaopt_static_inverse")
      import :: c_long, c_int
      integer(c_long), value :: lo, hi
      integer(c_int), value :: thread, threads
      integer(c_long), intent(out) :: first, last
    end subroutine
    subroutine c_phase(d, parallel, id, lo, hi, first, last) bind(c, name="numaopt_phase")
      import :: numaopt_dist, c_long, c_int
      type(numaopt_dist), intent(in) :: d
      integer(c_int), value :: parallel, id
      integer(c_long), value :: lo, hi
      integer(c_long), intent(out) :: first, last
    end subroutine
    integer(c_int) function c_part(d, parallel, id, lo, hi, thread, threads, k, first, last) bind(c, name="numaopt_part")
      import :: numaopt_dist, c_long, c_int
      type(numaopt_dist), intent(in) :: d
      integer(c_int), value :: parallel, id, thread, threads, k
      integer(c_long), value :: lo, hi
      integer(c_long), intent(out) :: first, last
    end function
    integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
      import :: c_size_t, c_ptr
      type(c_ptr), value :: text
    end function
  end interface

  interface numaopt_allocate
    module procedure allocate1, allocate2, allocate3, allocate4
  end interface

contains

  ! Chunk first..last of the loop lo..hi.
  subroutine numaopt_static(lo, hi, thread, threads, first, last)
    integer, intent(in) :: lo, hi, thread, threads
    integer, intent(out) :: first, last
    integer(c_long) :: b, e
    call c_static(int(lo - 1, c_long), int(hi, c_long), thread, threads, b, e)
    first = int(b) + 1
    last = int(e)
  end subroutine

  subroutine numaopt_static_inverse(lo, hi, thread, threads, first, last)
    integer, intent(in) :: lo, hi, thread, threads
    integer, intent(out) :: first, last
    integer(c_long) :: b, e
    call c_static_inverse(int(lo - 1, c_long), int(hi, c_long), thread, threads, b, e)
    first = int(b) + 1
    last = int(e)
  end subroutine

  subroutine numaopt_phase(d, parallel, id, lo, hi, first, last)
    type(numaopt_dist), intent(in) :: d
    integer, intent(in) :: parallel, id, lo, hi
    integer, intent(out) :: first, last
    integer(c_long) :: b, e
    call c_phase(d, parallel, id, int(lo - 1, c_long), int(hi, c_long), b, e)
    first = int(b) + 1
    last = int(e)
  end subroutine

  ! True while the thread has a part k = 0, 1, ...: part 0 alone, but for block-exclusive
  ! with fewer threads than nodes.
  logical function numaopt_part(d, parallel, id, lo, hi, thread, threads, k, first, last)
    type(numaopt_dist), intent(in) :: d
    integer, intent(in) :: parallel, id, lo, hi, thread, threads, k
    integer, intent(out) :: first, last
    integer(c_long) :: b, e
    numaopt_part = c_part(d, parallel, id, int(lo - 1, c_long), int(hi, c_long), thread, threads, k, b, e) /= 0
    first = int(b) + 1
    last = int(e)
  end function

  ! Text of d%why or of a report's note, "" where there is none.
  function numaopt_text(p) result(text)
    type(c_ptr), intent(in) :: p
    character(:), allocatable :: text
    character(c_char), pointer :: c(:)
    integer :: i
    if (.not. c_associated(p)) then
      text = ""
      return
    end if
    call c_f_pointer(p, c, [c_strlen(p)])
    allocate (character(size(c)) :: text)
    do i = 1, size(c)
      text(i:i) = c(i)
    end do
  end function

  ! numaopt_alloc of 8-byte reals; p is not associated where that fails, or where the
  ! rank cannot hold d. Free with numaopt_free(c_loc(p), d).
  subroutine allocate1(d, p, report)
    type(numaopt_dist), intent(inout) :: d
    real(c_double), pointer, intent(out) :: p(:)
    type(numaopt_report), intent(out), optional :: report
    type(c_ptr) :: at
    nullify (p)
    if (modulo(d%bytes, 8_c_size_t) /= 0) return
    at = reported(d, report)
    if (c_associated(at)) call c_f_pointer(at, p, [d%bytes / 8])
  end subroutine

  subroutine allocate2(d, p, report)
    type(numaopt_dist), intent(inout) :: d
    real(c_double), pointer, intent(out) :: p(:, :)
    type(numaopt_report), intent(out), optional :: report
    type(c_ptr) :: at
    nullify (p)
    if (d%elem /= 8 .or. d%extent(3) /= 1) return
    at = reported(d, report)
    if (c_associated(at)) call c_f_pointer(at, p, [d%padded(2), d%padded(1)])
  end subroutine

  subroutine allocate3(d, p, report)
    type(numaopt_dist), intent(inout) :: d
    real(c_double), pointer, intent(out) :: p(:, :, :)
    type(numaopt_report), intent(out), optional :: report
    type(c_ptr) :: at
    nullify (p)
    if (d%elem /= 8) return
    at = reported(d, report)
    if (c_associated(at)) call c_f_pointer(at, p, [d%padded(3), d%padded(2), d%padded(1)])
  end subroutine

  subroutine allocate4(d, p, report)
    type(numaopt_dist), intent(inout) :: d
    real(c_double), pointer, intent(out) :: p(:, :, :, :)
    type(numaopt_report), intent(out), optional :: report
    type(c_ptr) :: at
    nullify (p)
    if (modulo(d%elem, 8_c_size_t) /= 0) return
    at = reported(d, report)
    if (c_associated(at)) call c_f_pointer(at, p, [d%elem / 8, d%padded(3), d%padded(2), d%padded(1)])
  end subroutine

  type(c_ptr) function reported(d, report)
    type(numaopt_dist), intent(inout) :: d
    type(numaopt_report), intent(out), optional :: report
    type(numaopt_report) :: own
    reported = numaopt_alloc(d, own)
    if (present(report)) report = own
  end function
end module numaopt
