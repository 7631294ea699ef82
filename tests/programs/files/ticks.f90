program ticks
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function usleep(us) bind(c)
      import; integer(c_int), value :: us
    end function
  end interface
  real(8), allocatable :: a(:)
  integer :: i, r
  real(8) :: s
  open(10, file='out.txt')
  do
    allocate(a(20000))
    s = 0
    !$omp parallel do reduction(+:s)
    do i = 1, 20000
      a(i) = sin(real(i,8)); s = s + a(i)
    end do
    !$omp end parallel do
    write(10,*) s
    deallocate(a)
    r = usleep(5000)
  end do
end program
