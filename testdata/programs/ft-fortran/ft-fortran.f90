! The 3-D Fourier transform of ../ft in Fortran.
! usage: ft-fortran [iterations]
module ft
  implicit none
  integer, parameter :: logn = 6, n = 2**logn
  complex(8), allocatable :: u0(:, :, :), u1(:, :, :)
  complex(8) :: roots(0:n / 2 - 1)
  integer :: reversed(n)
contains
  subroutine initialize()
    real(8), parameter :: pi = 3.141592653589793d0
    integer :: i, j, k, b
    allocate (u0(n, n, n), u1(n, n, n))
    do i = 0, n / 2 - 1
      roots(i) = cmplx(cos(2 * pi * i / n), -sin(2 * pi * i / n), 8)
    end do
    reversed = 1
    do i = 1, n
      do b = 0, logn - 1
        if (btest(i - 1, b)) reversed(i) = reversed(i) + 2**(logn - 1 - b)
      end do
    end do
    !$omp parallel do private(i, j) schedule(static)
    do k = 1, n
      do j = 1, n
        do i = 1, n
          u0(i, j, k) = cmplx(mod(7 * k + 3 * j + i, 19) / 16d0, mod(k + 5 * j + 2 * i, 23) / 16d0, 8)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! fft transforms a line whose elements were stored in bit-reversed order.
  subroutine fft(x)
    complex(8), intent(inout) :: x(n)
    complex(8) :: t
    integer :: i, j, half
    half = 1
    do while (half < n)
      do i = 1, n, 2 * half
        do j = 0, half - 1
          t = roots(j * (n / 2 / half)) * x(i + j + half)
          x(i + j + half) = x(i + j) - t
          x(i + j) = x(i + j) + t
        end do
      end do
      half = 2 * half
    end do
    x = x / sqrt(real(n, 8))
  end subroutine

  subroutine cffts12()
    integer :: i, j, k
    complex(8) :: line(n)
    !$omp parallel do private(i, j, line) schedule(static)
    do k = 1, n
      do j = 1, n
        line(reversed) = u0(:, j, k)
        call fft(line)
        u1(:, j, k) = line
      end do
      do i = 1, n
        line(reversed) = u1(i, :, k)
        call fft(line)
        u1(i, :, k) = line
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine cffts3(decay)
    real(8), intent(in) :: decay
    integer :: i, j
    complex(8) :: line(n)
    !$omp parallel do private(i, line) schedule(static)
    do j = 1, n
      do i = 1, n
        line(reversed) = u1(i, j, :)
        call fft(line)
        u0(i, j, :) = decay * line
      end do
    end do
    !$omp end parallel do
  end subroutine
end module

program main
  use ft
  implicit none
  integer :: s, iterations
  real(8) :: plane(n)
  character(32) :: text
  iterations = 3
  if (command_argument_count() > 0) then
    call get_command_argument(1, text)
    read (text, *) iterations
  end if
  call initialize()
  do s = 1, iterations
    call cffts12()
    call cffts3(1 - 0.01d0 * s)
  end do
  do s = 1, n
    plane(s) = sum(real(u0(:, :, s))**2) + sum(aimag(u0(:, 1:n:3, s)))
  end do
  print '(a,es25.17)', 'checksum', sum(plane)
end program
