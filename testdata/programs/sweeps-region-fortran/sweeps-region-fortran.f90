! The sweeps of lu in one parallel region, as NPB lu has them: the region calls them plane
! by plane, and each is a subroutine with a worksharing loop of its own.
! usage: sweeps-region-fortran [iterations]
module planes
  implicit none
  integer, parameter :: ni = 200, nj = 128, nk = 12
  real(8) :: v(5, ni, nj, nk), u(5, ni, nj, nk)
end module

subroutine initialise()
  use planes
  implicit none
  integer :: i, j, k, m
  !$omp parallel do private(i, k, m) schedule(static)
  do j = 1, nj
    do k = 1, nk
      do i = 1, ni
        do m = 1, 5
          v(m, i, j, k) = 1 + 0.1d0 * mod(i + j + k + m, 9)
          u(m, i, j, k) = 0.3d0 * mod(i * j + k, 5)
        end do
      end do
    end do
  end do
  !$omp end parallel do
end subroutine

subroutine blts(k)
  use planes
  implicit none
  integer, intent(in) :: k
  integer :: i, j, m
  !$omp do schedule(static)
  do j = 1, nj
    do i = 2, ni
      do m = 1, 5
        v(m, i, j, k) = (v(m, i, j, k) + 0.2d0 * v(m, i, j, k - 1) + 0.1d0 * v(m, i - 1, j, k)) / (1.3d0 + 0.01d0 * u(m, i, j, k))
      end do
    end do
  end do
  !$omp end do
end subroutine

subroutine buts(k)
  use planes
  implicit none
  integer, intent(in) :: k
  integer :: i, j, m
  !$omp do schedule(static)
  do j = nj, 1, -1
    do i = ni - 1, 1, -1
      do m = 1, 5
        v(m, i, j, k) = (v(m, i, j, k) + 0.2d0 * v(m, i, j, k + 1) + 0.1d0 * v(m, i + 1, j, k)) / (1.3d0 + 0.01d0 * u(m, i, j, k))
      end do
    end do
  end do
  !$omp end do
end subroutine

program sweeps_region
  use planes
  implicit none
  integer :: it, k, iterations
  character(16) :: argument
  iterations = 3
  if (command_argument_count() > 0) then
    call get_command_argument(1, argument)
    read (argument, *) iterations
  end if
  call initialise()
  do it = 1, iterations
    !$omp parallel default(shared) private(k)
    do k = 2, nk
      call blts(k)
    end do
    do k = nk - 1, 1, -1
      call buts(k)
    end do
    !$omp end parallel
  end do
  print '(a, es25.17)', 'checksum', sum(v)
end program
