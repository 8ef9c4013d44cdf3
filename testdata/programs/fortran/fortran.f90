! Fortran: a COMMON block, a module array and an allocatable one, initialised by
! the main thread and then used in parallel.
! usage: fortran [columns] [steps]
module grid
  implicit none
  integer, parameter :: rows = 1024, max_columns = 2048
  real(8) :: pressure(rows, max_columns)
contains
  subroutine advance(flux, n)
    integer, intent(in) :: n
    real(8), intent(inout) :: flux(rows, n)
    real(8) :: density(rows, max_columns)
    common /fields/ density
    integer :: i, j
    !$omp parallel do private(i) schedule(static)
    do j = 1, n
      do i = 2, rows
        density(i, j) = 0.5d0 * density(i, j) + 0.25d0 * pressure(i, j)
        flux(i, j) = flux(i - 1, j) * 0.25d0 + density(i, j)
      end do
    end do
    !$omp end parallel do
  end subroutine advance
end module grid

program fortran
  use grid
  implicit none
  real(8) :: density(rows, max_columns)
  common /fields/ density
  real(8), allocatable :: flux(:, :)
  real(8) :: part(max_columns)
  integer :: n, steps, i, j, s
  n = argument(1, 1024)
  steps = argument(2, 6)
  if (n > max_columns) stop 2
  allocate (flux(rows, n))
  do j = 1, n
    do i = 1, rows
      density(i, j) = mod(i + 3 * j, 13)
      pressure(i, j) = mod(5 * i + j, 7)
      flux(i, j) = 1.0d0
    end do
  end do
  do s = 1, steps
    call advance(flux, n)
  end do
  !$omp parallel do schedule(static)
  do j = 1, n
    part(j) = sum(flux(:, j))
  end do
  !$omp end parallel do
  print '(a,es24.16)', 'checksum', sum(part(1:n))
  deallocate (flux)
contains
  integer function argument(k, default)
    integer, intent(in) :: k, default
    character(32) :: text
    argument = default
    if (command_argument_count() < k) return
    call get_command_argument(k, text)
    read (text, *) argument
  end function argument
end program fortran
