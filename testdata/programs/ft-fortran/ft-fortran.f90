! The 3-D Fourier transform of ../ft in Fortran.
! usage: ft-fortran [iterations]
module ft
  implicit none
  integer, parameter :: logx = 6, logy = 5, logz = 7, nx = 2**logx, ny = 2**logy, nz = 2**logz
  integer, parameter :: block = 4 ! lines at a time: those that share cache lines
  complex(8), allocatable :: u0(:, :, :), u1(:, :, :)
  complex(8) :: roots(0:nz / 2 - 1)
contains
  subroutine initialize()
    real(8), parameter :: pi = 3.141592653589793d0
    integer :: i, j, k
    allocate (u0(nx, ny, nz), u1(nx, ny, nz))
    do i = 0, nz / 2 - 1
      roots(i) = cmplx(cos(2 * pi * i / nz), -sin(2 * pi * i / nz), 8)
    end do
    do k = 1, nz
      do j = 1, ny
        do i = 1, nx
          u0(i, j, k) = cmplx(mod(7 * k + 3 * j + i, 19) / 16d0, mod(k + 5 * j + 2 * i, 23) / 16d0, 8)
        end do
      end do
    end do
  end subroutine

  ! reverse is i - 1 with its bits, log of them, in reverse order, plus 1.
  pure integer function reverse(i, log)
    integer, intent(in) :: i, log
    integer :: b
    reverse = 1
    do b = 0, log - 1
      if (btest(i - 1, b)) reverse = reverse + 2**(log - 1 - b)
    end do
  end function

  ! fft transforms a line of 2**log points that were stored in bit-reversed order.
  subroutine fft(x, log)
    integer, intent(in) :: log
    complex(8), intent(inout) :: x(2**log)
    complex(8) :: t
    integer :: i, j, half
    half = 1
    do while (half < 2**log)
      do i = 1, 2**log, 2 * half
        do j = 0, half - 1
          t = roots(j * (nz / 2 / half)) * x(i + j + half)
          x(i + j + half) = x(i + j) - t
          x(i + j) = x(i + j) + t
        end do
      end do
      half = 2 * half
    end do
    x = x / sqrt(real(2**log, 8))
  end subroutine

  subroutine cffts12()
    integer :: i, j, k, b
    complex(8) :: line(max(nx, ny), block)
    !$omp parallel do private(i, j, b, line) schedule(static)
    do k = 1, nz
      do j = 1, ny
        do i = 1, nx
          line(reverse(i, logx), 1) = u0(i, j, k)
        end do
        call fft(line(:, 1), logx)
        u1(:, j, k) = line(1:nx, 1)
      end do
      do i = 1, nx, block
        do j = 1, ny
          line(reverse(j, logy), :) = u1(i:i + block - 1, j, k)
        end do
        do b = 1, block
          call fft(line(:, b), logy)
        end do
        do j = 1, ny
          u1(i:i + block - 1, j, k) = line(j, :)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine cffts3(decay)
    real(8), intent(in) :: decay
    integer :: i, j, k, b
    complex(8) :: line(nz, block)
    !$omp parallel do private(i, k, b, line) schedule(static)
    do j = 1, ny
      do i = 1, nx, block
        do k = 1, nz
          line(reverse(k, logz), :) = u1(i:i + block - 1, j, k)
        end do
        do b = 1, block
          call fft(line(:, b), logz)
        end do
        do k = 1, nz
          u0(i:i + block - 1, j, k) = decay * line(k, :)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine
end module

program main
  use ft
  implicit none
  integer :: n, s, iterations
  real(8) :: total
  complex(8) :: u
  character(32) :: text
  iterations = 5
  if (command_argument_count() > 0) then
    call get_command_argument(1, text)
    read (text, *) iterations
  end if
  call initialize()
  do s = 1, iterations
    call cffts12()
    call cffts3(1 - 0.01d0 * s)
  end do
  total = 0
  do n = 1, 1024 ! points, as NPB's
    u = u0(1 + mod(n, nx), 1 + mod(3 * n, ny), 1 + mod(5 * n, nz))
    total = total + real(u)**2 * (1 + mod(n, 3)) + aimag(u) * (1 + mod(n, 5))
  end do
  print '(a,es25.17)', 'checksum', total
end program
