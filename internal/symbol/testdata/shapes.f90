module fields
  implicit none
  real(8) :: u(5, 0:63, 32, 10)
  complex(8) :: z(100, 200)
end module
program shapes
  use fields
  implicit none
  real(8) :: q, r, s
  common /one/ q(-2:97, 60)
  common /two/ r(1000), s(1000)
  integer :: i
  do i = 1, 60
    q(:, i) = i
    u(:, i, 1, 1) = i
    z(i, i) = i
  end do
  r = 1
  s = 2
  print *, sum(q), sum(u), sum(z), sum(r), sum(s)
end program
