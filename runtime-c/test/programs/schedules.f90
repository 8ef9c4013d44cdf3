! schedules: static loops of Fortran and the program's own thread numbers.
program schedules
  use omp_lib
  implicit none
  integer, parameter :: n = 3000
  integer :: i, j, ran(n), wrong
  real(8) :: a(n), total
  ran = 0
  !$omp parallel do schedule(static)
  do i = n, 1, -1
     ran(i) = ran(i) + 1
     a(i) = i
  end do
  print *, 'each once', all(ran == 1)
  do j = 1, 5
     total = 0
     !$omp parallel do schedule(static) reduction(+:total)
     do i = 1, n, 2
        total = total + a(i)
     end do
     print *, 'sum', total
  end do
  wrong = 0
  !$omp parallel reduction(+:wrong)
  if (omp_get_thread_num() < 0 .or. omp_get_thread_num() >= omp_get_num_threads()) wrong = wrong + 1
  !$omp end parallel
  print *, 'own', wrong
end program
