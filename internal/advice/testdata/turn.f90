program turn
  implicit none
  integer, parameter :: nx = 64, ny = 76, nz = 64
  real(8) :: from(nx, ny, nz), to(nz, ny, nx)
  common /matrices/ from, to
  integer :: i, j, k, t
  do t = 1, 3
    !$omp parallel do private(i, j)
    do k = 1, nz
      do j = 1, ny
        do i = 1, nx
          from(i, j, k) = 0.25d0 * from(i, j, k) + mod(3 * i + j + k, 17)
        end do
      end do
    end do
    !$omp parallel do private(j, k)
    do i = 1, nx
      do j = 1, ny
        do k = 1, nz
          to(k, j, i) = 0.5d0 * to(k, j, i) + from(i, j, k)
        end do
      end do
    end do
  end do
  print '(a, es24.16)', 'checksum ', sum(to(:, :, 1:nx:9))
end program
