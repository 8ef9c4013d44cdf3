! The block tridiagonal solver of ../bt in Fortran: line sweeps along z, y and x
! over arrays of 5-vectors and of blocks in a COMMON block, shared by planes of k but in
! z_solve, which comes first.
! usage: bt-fortran [iterations]
module bt
  implicit none
  integer, parameter :: nx = 102, ny = 24, nz = 32
  real(8) :: u(5, nx, ny, nz), rhs(5, nx, ny, nz), forcing(5, nx, ny, nz)
  real(8) :: lhs(5, 3, nx, ny, nz) ! left of, on and right of the diagonal
  common /fields/ u, rhs, forcing, lhs
contains
  subroutine initialize()
    integer :: i, j, k, m
    !$omp parallel do private(i, j, m) schedule(static)
    do k = 1, nz
      do j = 1, ny
        do i = 1, nx
          do m = 1, 5
            u(m, i, j, k) = 1 + mod(k + 2 * j + 3 * i + m, 11) / 16d0
            forcing(m, i, j, k) = mod(3 * k + j + i + 2 * m, 13) / 32d0
          end do
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine compute_rhs()
    integer :: i, j, k
    !$omp parallel do private(i, j) schedule(static)
    do k = 2, nz - 1
      do j = 2, ny - 1
        do i = 2, nx - 1
          rhs(:, i, j, k) = forcing(:, i, j, k) - 6 * u(:, i, j, k) + u(:, i - 1, j, k) + u(:, i + 1, j, k) &
            + u(:, i, j - 1, k) + u(:, i, j + 1, k) + u(:, i, j, k - 1) + u(:, i, j, k + 1)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! assemble makes the blocks of a point of its state s.
  subroutine assemble(l, s)
    real(8), intent(out) :: l(5, 3)
    real(8), intent(in) :: s(5)
    l(:, 1) = -0.1d0 * s
    l(:, 2) = 1 + 0.2d0 * s
    l(:, 3) = -0.08d0 * s
  end subroutine

  ! eliminate takes a point's left neighbour on the line, blocks p and right-hand side q,
  ! out of its equations.
  subroutine eliminate(l, r, p, q)
    real(8), intent(inout) :: l(5, 3), r(5)
    real(8), intent(in) :: p(5, 3), q(5)
    l(:, 2) = l(:, 2) - l(:, 1) / p(:, 2) * p(:, 3)
    r = r - l(:, 1) / p(:, 2) * q - 0.02d0 * sum(q)
  end subroutine

  ! substitute puts the solution q of the right neighbour into a point's equations.
  subroutine substitute(l, r, q)
    real(8), intent(in) :: l(5, 3), q(5)
    real(8), intent(inout) :: r(5)
    r = (r - l(:, 3) * q) / l(:, 2)
  end subroutine

  subroutine x_solve()
    integer :: i, j, k
    !$omp parallel do private(i, j) schedule(static)
    do k = 2, nz - 1
      do j = 2, ny - 1
        do i = 2, nx - 1
          call assemble(lhs(:, :, i, j, k), u(:, i, j, k))
          if (i > 2) call eliminate(lhs(:, :, i, j, k), rhs(:, i, j, k), lhs(:, :, i - 1, j, k), rhs(:, i - 1, j, k))
        end do
        do i = nx - 2, 2, -1
          call substitute(lhs(:, :, i, j, k), rhs(:, i, j, k), rhs(:, i + 1, j, k))
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
        do j = 2, ny - 1
          call assemble(lhs(:, :, i, j, k), u(:, i, j, k))
          if (j > 2) call eliminate(lhs(:, :, i, j, k), rhs(:, i, j, k), lhs(:, :, i, j - 1, k), rhs(:, i, j - 1, k))
        end do
        do j = ny - 2, 2, -1
          call substitute(lhs(:, :, i, j, k), rhs(:, i, j, k), rhs(:, i, j + 1, k))
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
        do k = 2, nz - 1
          call assemble(lhs(:, :, i, j, k), u(:, i, j, k))
          if (k > 2) call eliminate(lhs(:, :, i, j, k), rhs(:, i, j, k), lhs(:, :, i, j, k - 1), rhs(:, i, j, k - 1))
        end do
        do k = nz - 2, 2, -1
          call substitute(lhs(:, :, i, j, k), rhs(:, i, j, k), rhs(:, i, j, k + 1))
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
  use bt
  implicit none
  integer :: n, iterations
  real(8) :: plane(nz)
  character(32) :: text
  iterations = 4
  if (command_argument_count() > 0) then
    call get_command_argument(1, text)
    read (text, *) iterations
  end if
  call initialize()
  do n = 1, iterations
    call compute_rhs()
    call z_solve()
    call y_solve()
    call x_solve()
    call add()
  end do
  do n = 1, nz
    plane(n) = sum(u(:, :, :, n))
  end do
  print '(a,es25.17)', 'checksum', sum(plane)
end program
