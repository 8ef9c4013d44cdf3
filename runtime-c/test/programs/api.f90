! numaopt.f90 in use: sweeps along both dimensions, plain and in phases; the same
! numbers to the last bit.
module owners
  use, intrinsic :: iso_c_binding
contains
  function pairs(arg, offset) result(node) bind(c)
    type(c_ptr), value :: arg
    integer(c_size_t), value :: offset
    integer(c_int) :: node
    node = int(modulo(offset / 8192, 2_c_size_t))
    if (c_associated(arg)) node = -1
  end function
end module

program api
  use numaopt
  use owners
  use omp_lib
  implicit none
  integer, parameter :: nx = 61, ny = 54, m = 64
  type(numaopt_dist) :: d, c, none
  type(numaopt_report) :: r
  real(c_double), pointer :: u(:, :, :, :), flat(:)
  real(c_double), allocatable :: v(:, :, :)
  integer :: x, y, id, k, x0, x1, y0, y1, i, first, last, seen(10)
  logical :: bad

  d = numaopt_block_exclusive(int(nx, c_size_t), int(ny, c_size_t), 1_c_size_t, int(8 * m, c_size_t), NUMAOPT_X, NUMAOPT_Y)
  call numaopt_allocate(d, u, r)
  if (.not. associated(u)) error stop "not allocated"
  allocate (v(m, ny, nx))
  do x = 1, nx
    do y = 1, ny
      v(:, y, x) = [(real(modulo(3 * x + 7 * y + i, 11), c_double) / 8, i = 1, m)]
      u(:, 1, y, x) = v(:, y, x)
    end do
  end do

  do x = 2, nx
    do y = 2, ny - 1
      v(:, y, x) = 0.3d0 * v(:, y, x) + 0.6d0 * v(:, y, x - 1)
    end do
  end do
  do x = 2, nx - 1
    do y = 2, ny
      v(:, y, x) = 0.3d0 * v(:, y, x) + 0.6d0 * v(:, y - 1, x)
    end do
  end do

  !$omp parallel private(id, k, x, y, x0, x1, y0, y1)
  do id = 0, numaopt_phases(d) - 1
    call numaopt_phase(d, NUMAOPT_Y, id, 2, nx, x0, x1)
    k = 0
    do while (numaopt_part(d, NUMAOPT_Y, id, 2, ny - 1, omp_get_thread_num(), omp_get_num_threads(), k, y0, y1))
      do x = x0, x1
        do y = y0, y1
          u(:, 1, y, x) = 0.3d0 * u(:, 1, y, x) + 0.6d0 * u(:, 1, y, x - 1)
        end do
      end do
      k = k + 1
    end do
    !$omp barrier
  end do
  do id = 0, numaopt_phases(d) - 1
    call numaopt_phase(d, NUMAOPT_X, id, 2, ny, y0, y1)
    k = 0
    do while (numaopt_part(d, NUMAOPT_X, id, 2, nx - 1, omp_get_thread_num(), omp_get_num_threads(), k, x0, x1))
      do x = x0, x1
        do y = y0, y1
          u(:, 1, y, x) = 0.3d0 * u(:, 1, y, x) + 0.6d0 * u(:, 1, y - 1, x)
        end do
      end do
      k = k + 1
    end do
    !$omp barrier
  end do
  !$omp end parallel

  bad = any(u(:, 1, 1:ny, :) /= v)
  if (d%padded(1) /= nx .or. d%padded(2) < ny .or. d%bytes /= 8 * m * d%padded(1) * d%padded(2)) bad = .true.

  seen = 0
  do i = 0, 3
    call numaopt_static_inverse(1, 10, i, 4, first, last)
    seen(first:last) = seen(first:last) + 1
    if (i == 3 .and. (first /= 1 .or. last /= 3)) bad = .true.
    call numaopt_static(1, 10, i, 4, first, last)
    seen(first:last) = seen(first:last) + 1
  end do
  if (any(seen /= 2)) bad = .true.

  c = numaopt_custom(65536_c_size_t, 8192_c_size_t, c_funloc(pairs), c_null_ptr)
  if (numaopt_owner(c, 8192_c_size_t) /= modulo(1, numaopt_nodes())) bad = .true.
  call numaopt_allocate(c, flat)
  if (size(flat) /= 8192) bad = .true.
  flat = 1
  if (numaopt_distribute_to(c_loc(flat), 65536_c_size_t, numaopt_bind(65536_c_size_t, 0), r) /= 0) bad = .true.
  if (numaopt_home(c_loc(flat)) /= 0 .or. r%pages /= 16) bad = .true.
  call numaopt_free(c_loc(flat), c)

  none = numaopt_y_wise(0_c_size_t, 1_c_size_t, 1_c_size_t, 8_c_size_t)
  if (none%kind /= NUMAOPT_NONE .or. index(numaopt_text(none%why), "size 0") == 0) bad = .true.
  call numaopt_free(c_loc(u), d)
  if (bad) error stop "differs"
  print '(a,i0,a)', "same, ", numaopt_nodes(), " nodes"
end program
