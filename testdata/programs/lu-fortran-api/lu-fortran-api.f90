! lu-fortran with the transformation of CGO'12 fig. 14(c): the arrays are x-wise, by
! planes, and the sweep that descends takes each plane on the node that holds it.
! usage: lu-fortran-api [iterations]
module lu
  use numaopt
  use omp_lib
  implicit none
  integer, parameter :: nx = 102, ny = 24, nz = 32
  real(8), pointer :: u(:, :, :, :), rsd(:, :, :, :), frct(:, :, :, :)
  real(8) :: plane(nz)
  type(numaopt_dist) :: d
contains
  ! A thread's planes first..last: its share of those that its node holds.
  subroutine planes(first, last)
    integer, intent(out) :: first, last
    if (.not. numaopt_part(d, NUMAOPT_X, 0, 1, nz, omp_get_thread_num(), omp_get_num_threads(), 0, first, last)) stop 1
  end subroutine

  subroutine setiv()
    integer :: i, j, k, m, first, last
    d = numaopt_x_wise(int(nz, 8), int(ny, 8), int(nx, 8), 40_8)
    call numaopt_allocate(d, u)
    call numaopt_allocate(d, rsd)
    call numaopt_allocate(d, frct)
    if (.not. (associated(u) .and. associated(rsd) .and. associated(frct))) stop 1
    !$omp parallel private(i, j, k, m, first, last)
    call planes(first, last)
    do k = first, last
      do j = 1, ny
        do i = 1, nx
          do m = 1, 5
            u(m, i, j, k) = 1 + mod(k + 2 * j + 3 * i + m, 11) / 16d0
            frct(m, i, j, k) = mod(3 * k + j + i + 2 * m, 13) / 32d0
            rsd(m, i, j, k) = 0
          end do
        end do
      end do
    end do
    !$omp end parallel
  end subroutine

  subroutine residual()
    integer :: i, j, k, first, last
    !$omp parallel private(i, j, k, first, last)
    call planes(first, last)
    do k = first, last
      do j = 2, ny - 1
        do i = 2, nx - 1
          rsd(:, i, j, k) = frct(:, i, j, k) - 0.25d0 * (4 * u(:, i, j, k) - u(:, i - 1, j, k) - u(:, i + 1, j, k) &
            - u(:, i, j - 1, k) - u(:, i, j + 1, k))
        end do
      end do
    end do
    !$omp end parallel
  end subroutine

  subroutine blts()
    integer :: i, j, k, first, last
    !$omp parallel private(i, j, k, first, last)
    call planes(first, last)
    do k = first, last
      do j = 2, ny - 1
        do i = 2, nx - 1
          rsd(:, i, j, k) = rsd(:, i, j, k) - 0.2d0 * u(:, i, j, k) * (rsd(:, i, j - 1, k) + rsd(:, i - 1, j, k))
        end do
      end do
    end do
    !$omp end parallel
  end subroutine

  ! Static-inverse: of the planes from the last to the first, thread t of T takes chunk
  ! T - 1 - t, which are its own.
  subroutine buts()
    integer :: i, j, k, first, last
    !$omp parallel private(i, j, k, first, last)
    call planes(first, last)
    do k = last, first, -1
      do j = ny - 1, 2, -1
        do i = nx - 1, 2, -1
          rsd(:, i, j, k) = rsd(:, i, j, k) - 0.2d0 * u(:, i, j, k) * (rsd(:, i, j + 1, k) + rsd(:, i + 1, j, k))
        end do
      end do
    end do
    !$omp end parallel
  end subroutine

  subroutine update()
    integer :: i, j, k, first, last
    !$omp parallel private(i, j, k, first, last)
    call planes(first, last)
    do k = first, last
      do j = 2, ny - 1
        do i = 2, nx - 1
          u(:, i, j, k) = u(:, i, j, k) + 0.05d0 * rsd(:, i, j, k)
        end do
      end do
    end do
    !$omp end parallel
  end subroutine

  subroutine l2norm()
    integer :: k, first, last
    !$omp parallel private(k, first, last)
    call planes(first, last)
    do k = first, last
      plane(k) = sum(u(:, :, :, k) ** 2)
    end do
    !$omp end parallel
  end subroutine
end module

program main
  use lu
  use, intrinsic :: iso_c_binding, only: c_loc
  implicit none
  integer :: n, iterations
  character(32) :: text
  iterations = 8
  if (command_argument_count() > 0) then
    call get_command_argument(1, text)
    read (text, *) iterations
  end if
  call setiv()
  do n = 1, iterations
    call residual()
    call blts()
    call buts()
    call update()
  end do
  call l2norm()
  print '(a,es25.17)', 'checksum', sum(plane)
  call numaopt_free(c_loc(u), d)
  call numaopt_free(c_loc(rsd), d)
  call numaopt_free(c_loc(frct), d)
end program
