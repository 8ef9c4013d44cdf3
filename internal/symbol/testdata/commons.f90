subroutine fill
  implicit none
  real(8) :: u(40, 30), w(40, 30)
  integer :: n, list(2000)
  common /flds/ u, w, n, list
  real(8) :: a(100), b(100), c(400)
  common /small/ a, b, c
  real(8) :: p(40, 20), q(40, 20)
  common /odd/ p, q
  u = 1; w = 2; list = 3; n = 4; a = 5; b = 6; c = 7; p = 8; q = 9
end subroutine
real(8) function total()
  implicit none
  real(8) :: u(40, 30), w(40, 30)
  integer :: n, list(2000)
  common /flds/ u, w, n, list
  total = sum(u) + sum(w)
end function
program commons
  implicit none
  real(8) :: v(40, 30), x(40, 30)
  integer :: n, list(2000)
  common /flds/ v, x, n, list
  real(8) :: r(40, 30), s(40, 10)
  common /odd/ r, s
  real(8), external :: total
  call fill
  print *, total(), sum(v), sum(x), n, sum(list), sum(r), sum(s)
end program
