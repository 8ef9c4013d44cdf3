! The scalar pentadiagonal solver of ../sp in Fortran.
! usage: sp-fortran [iterations]
module sp
  implicit none
  integer, parameter :: nx = 102, ny = 24, nz = 48
  real(8) :: u(5, nx, ny, nz), rhs(5, nx, ny, nz), rho(nx, ny, nz), speed(nx, ny, nz)
contains
  subroutine initialize()
    integer :: i, j, k, m
    !$omp parallel do private(i, j, m) schedule(static)
    do k = 1, nz
      do j = 1, ny
        do i = 1, nx
          do m = 1, 5
            u(m, i, j, k) = 1 + mod(k + 2 * j + 3 * i + m, 11) / 16d0
          end do
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine compute_rhs() ! two loops in one region
    integer :: i, j, k
    !$omp parallel private(i, j, k)
    !$omp do schedule(static)
    do k = 1, nz
      do j = 1, ny
        do i = 1, nx
          rho(i, j, k) = 1 / u(1, i, j, k)
          speed(i, j, k) = 0.1d0 * u(5, i, j, k) * rho(i, j, k)
        end do
      end do
    end do
    !$omp end do
    !$omp do schedule(static)
    do k = 2, nz - 1
      do j = 2, ny - 1
        do i = 2, nx - 1
          rhs(:, i, j, k) = rho(i, j, k) * (u(:, i - 1, j, k) + u(:, i + 1, j, k) + u(:, i, j - 1, k) &
            + u(:, i, j + 1, k) + u(:, i, j, k - 1) + u(:, i, j, k + 1) - 6 * u(:, i, j, k))
        end do
      end do
    end do
    !$omp end do
    !$omp end parallel
  end subroutine

  ! relax subtracts from r what its two neighbours on the line contribute.
  subroutine relax(r, s, p, pp)
    real(8), intent(inout) :: r(5)
    real(8), intent(in) :: s, p(5), pp(5)
    r = r - s * (0.5d0 * p - 0.25d0 * pp)
  end subroutine

  subroutine x_solve()
    integer :: i, j, k
    !$omp parallel do private(i, j) schedule(static)
    do k = 2, nz - 1
      do j = 2, ny - 1
        do i = 4, nx - 1
          call relax(rhs(:, i, j, k), speed(i, j, k), rhs(:, i - 1, j, k), rhs(:, i - 2, j, k))
        end do
        do i = nx - 3, 2, -1
          call relax(rhs(:, i, j, k), speed(i, j, k), rhs(:, i + 1, j, k), rhs(:, i + 2, j, k))
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine y_solve()
    integer :: i, j, k
    !$omp parallel do private(i, j) schedule(static)
    do k = 2, nz - 1
      do i = 2, nx - 1
        do j = 4, ny - 1
          call relax(rhs(:, i, j, k), speed(i, j, k), rhs(:, i, j - 1, k), rhs(:, i, j - 2, k))
        end do
        do j = ny - 3, 2, -1
          call relax(rhs(:, i, j, k), speed(i, j, k), rhs(:, i, j + 1, k), rhs(:, i, j + 2, k))
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine z_solve()
    integer :: i, j, k
    !$omp parallel do private(i, k) schedule(static)
    do j = 2, ny - 1
      do i = 2, nx - 1
        do k = 4, nz - 1
          call relax(rhs(:, i, j, k), speed(i, j, k), rhs(:, i, j, k - 1), rhs(:, i, j, k - 2))
        end do
        do k = nz - 3, 2, -1
          call relax(rhs(:, i, j, k), speed(i, j, k), rhs(:, i, j, k + 1), rhs(:, i, j, k + 2))
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine add()
    integer :: i, j, k
    !$omp parallel do private(i, j) schedule(static)
    do k = 2, nz - 1
      do j = 2, ny - 1
        do i = 2, nx - 1
          u(:, i, j, k) = u(:, i, j, k) + 0.01d0 * rhs(:, i, j, k)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine
end module

program main
  use sp
  implicit none
  integer :: n, iterations
  real(8) :: plane(nz)
  character(32) :: text
  iterations = 8
  if (command_argument_count() > 0) then
    call get_command_argument(1, text)
    read (text, *) iterations
  end if
  call initialize()
  do n = 1, iterations
    call compute_rhs()
    call x_solve()
    call y_solve()
    call z_solve()
    call add()
  end do
  do n = 1, nz
    plane(n) = sum(u(:, :, :, n))
  end do
  print '(a,es25.17)', 'checksum', sum(plane)
end program
