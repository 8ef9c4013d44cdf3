! Fortran loops whose thread number may be permuted (ok_) and may not (no_).
module loops
  use omp_lib
  implicit none
  integer, parameter :: n = 301
  real(8) :: a(5, n), b(5, n), total
contains
  subroutine ok_plain(m)
    integer, intent(in) :: m
    integer :: j
    !$omp parallel do schedule(static)
    do j = 1, m
      a(:, j) = 2 * b(:, j) + j
    end do
    !$omp end parallel do
  end subroutine
  subroutine ok_sweeps(m)
    integer, intent(in) :: m
    integer :: i, j, k
    !$omp parallel private(i, j, k)
    do k = 1, 3
      !$omp do schedule(static)
      do j = 2, m
        do i = 1, 5
          a(i, j) = a(i, j) + b(i, j - 1)
        end do
      end do
      !$omp end do
      !$omp do schedule(static)
      do j = m, 2, -1
        do i = 1, 5
          b(i, j) = 0.5d0 * a(i, j)
        end do
      end do
      !$omp end do
    end do
    !$omp end parallel
  end subroutine
  subroutine ok_reduction(m)
    integer, intent(in) :: m
    integer(8) :: s
    integer :: j
    s = 0
    !$omp parallel do schedule(static) reduction(+:s)
    do j = 1, m
      s = s + int(b(2, j)) * j
    end do
    !$omp end parallel do
    total = real(s, 8)
  end subroutine
  subroutine ok_workshare(m)
    integer, intent(in) :: m
    !$omp parallel workshare
    a(:, 1:m) = b(:, 1:m) + 1
    !$omp end parallel workshare
  end subroutine
  subroutine no_master(m)
    integer, intent(in) :: m
    integer :: j
    !$omp parallel
    !$omp master
    total = 4
    !$omp end master
    !$omp do schedule(static)
    do j = 1, m
      a(:, j) = b(:, j)
    end do
    !$omp end do
    !$omp end parallel
  end subroutine
  subroutine no_own_call(m) ! gfortran keeps the program's own call apart
    integer, intent(in) :: m
    integer :: j, mark(0:63)
    !$omp parallel
    mark(omp_get_thread_num()) = 1
    !$omp do schedule(static)
    do j = 1, m
      a(:, j) = 3 * b(:, j)
    end do
    !$omp end do
    !$omp end parallel
  end subroutine
  subroutine show(name)
    character(*), intent(in) :: name
    print '(a,2es25.17)', name, sum(a) + 3 * sum(a(:, 1:n:3)) + total, sum(b * b) + sum(b(2, 1:n:7))
    call fill()
  end subroutine
  subroutine fill()
    integer :: i, j
    do j = 1, n
      do i = 1, 5
        b(i, j) = mod(7 * i + j, 16)
      end do
    end do
    a = 0
    total = 0
  end subroutine
end module

program main
  use loops
  implicit none
  call fill()
  call ok_plain(n)
  call show('ok_plain')
  call ok_sweeps(n)
  call show('ok_sweeps')
  call ok_reduction(n)
  call show('ok_reduction')
  call ok_workshare(n)
  call show('ok_workshare')
  call no_master(n)
  call show('no_master')
  call no_own_call(n)
  call show('no_own_call')
end program
