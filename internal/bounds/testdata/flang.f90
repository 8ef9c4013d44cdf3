module m
  implicit none
  type t
    integer :: a = 0
  contains
    procedure :: set
    generic :: assignment(=) => set
  end type
  type w
    type(t) :: x
  end type
  type(w) :: all(1000), others(1000)
contains
  elemental subroutine set(l, r)
    class(t), intent(inout) :: l
    class(t), intent(in) :: r
    l%a = r%a + 1
  end subroutine
  subroutine go()
    integer :: i
    !$omp parallel do
    do i = 1, 1000
      all(i) = others(i)
    end do
  end subroutine
end module
program p
  use m
  call go()
  print *, all(5)%x%a
end program
