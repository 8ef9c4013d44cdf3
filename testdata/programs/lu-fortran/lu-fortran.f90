! The relaxation of ../lu in Fortran: a lower sweep that ascends and an upper one
! that descends, each in a subroutine of its own.
! usage: lu-fortran [iterations]
module lu
  implicit none
  integer, parameter :: nx = 102, ny = 24, nz = 32
  real(8), allocatable :: u(:, :, :, :), rsd(:, :, :, :), frct(:, :, :, :)
contains
  subroutine setiv()
    integer :: i, j, k, m
    allocate (u(5, nx, ny, nz), rsd(5, nx, ny, nz), frct(5, nx, ny, nz))
    !$omp parallel do private(i, j, m) schedule(static)
    do k = 1, nz
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
    !$omp end parallel do
  end subroutine

  subroutine residual()
    integer :: i, j, k
    !$omp parallel do private(i, j) schedule(static)
    do k = 1, nz
      do j = 2, ny - 1
        do i = 2, nx - 1
          rsd(:, i, j, k) = frct(:, i, j, k) - 0.25d0 * (4 * u(:, i, j, k) - u(:, i - 1, j, k) - u(:, i + 1, j, k) &
            - u(:, i, j - 1, k) - u(:, i, j + 1, k))
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine blts()
    integer :: i, j, k
    !$omp parallel do private(i, j) schedule(static)
    do k = 1, nz
      do j = 2, ny - 1
        do i = 2, nx - 1
          rsd(:, i, j, k) = rsd(:, i, j, k) - 0.2d0 * u(:, i, j, k) * (rsd(:, i, j - 1, k) + rsd(:, i - 1, j, k))
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine buts()
    integer :: i, j, k
    !$omp parallel do private(i, j) schedule(static)
    do k = nz, 1, -1
      do j = ny - 1, 2, -1
        do i = nx - 1, 2, -1
          rsd(:, i, j, k) = rsd(:, i, j, k) - 0.2d0 * u(:, i, j, k) * (rsd(:, i, j + 1, k) + rsd(:, i + 1, j, k))
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine update()
    integer :: i, j, k
    !$omp parallel do private(i, j) schedule(static)
    do k = 1, nz
      do j = 2, ny - 1
        do i = 2, nx - 1
          u(:, i, j, k) = u(:, i, j, k) + 0.05d0 * rsd(:, i, j, k)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine
end module

program main
  use lu
  implicit none
  integer :: n, iterations
  real(8) :: plane(nz)
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
  do n = 1, nz
    plane(n) = sum(u(:, :, :, n) ** 2)
  end do
  print '(a,es25.17)', 'checksum', sum(plane)
end program
