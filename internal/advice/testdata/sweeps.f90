! Two sweeps over one array, along either axis, as testdata/programs/sweeps.
module sweeps
  implicit none
  integer, parameter :: n = 126, m = 64
  real(8), target :: a(m, n, n)
contains
  subroutine initialize()
    integer :: x, y, z
    !$omp parallel do private(y, z) schedule(static)
    do x = 1, n
      do y = 1, n
        do z = 1, m
          a(z, y, x) = 1 + mod(3 * x + 5 * y + z, 17) / 16d0
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine x_sweep()
    integer :: x, y
    do x = 2, n - 1
      !$omp parallel do schedule(static)
      do y = 2, n - 1
        a(:, y, x) = 0.5d0 * a(:, y, x) + 0.375d0 * a(:, y, x - 1)
      end do
      !$omp end parallel do
    end do
  end subroutine

  subroutine y_sweep()
    integer :: x, y
    !$omp parallel do private(y) schedule(static)
    do x = 2, n - 1
      do y = n - 1, 2, -1
        a(:, y, x) = 0.5d0 * a(:, y, x) + 0.375d0 * a(:, y + 1, x)
      end do
    end do
    !$omp end parallel do
  end subroutine
end module

program main
  use sweeps
  implicit none
  integer :: i
  call initialize()
  do i = 1, 4
    call x_sweep()
    call y_sweep()
  end do
  print '(es25.17)', sum(a(1, :, :)) + sum(a(17, :, 5))
end program
