module flow
  implicit none
  real(8) :: u(1000,100)
  real(8), allocatable :: v(:,:)
contains
  subroutine sweep(n)
    integer, intent(in) :: n
    integer :: i, j
    real(8) :: q
    common /fields/ q(100000)
    !$omp parallel do private(i)
    do j = 1, n
      do i = 1, 1000
        u(i,j) = u(i,j) + v(i,j) + q(i)
      end do
    end do
  end subroutine
end module
program heat
  use flow
  implicit none
  integer :: i
  real(8) :: q
  common /fields/ q(100000)
  allocate(v(1000,100))
  !$omp parallel do
  do i = 1, 100
    v(:,i) = 1d0
  end do
  q = 2d0
  call sweep(100)
  print *, u(5,5)
end program
