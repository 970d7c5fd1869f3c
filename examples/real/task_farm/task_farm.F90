! A farm of integrals: rank 0 hands out numbers of tasks and collects results; it computes nothing itself.
program task_farm
  use mpi
  implicit none
  integer, parameter :: tasks = 500, work = 1, stop_tag = 2
  integer :: rank, ranks, ierr
  double precision :: total, start
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
#ifdef REPAIRED
  call share_tasks()
#else
  if (rank == 0) then
     call hand_out()
  else
     call serve()
  end if
#endif
  if (rank == 0) print '(a,f12.6)', 'integral ', total
  call MPI_Finalize(ierr)
contains
  function integrate(task) result(area)
    integer, intent(in) :: task
    double precision :: area, x
    integer :: i, steps
    area = 0.0d0
    steps = 400000 + 20000 * mod(task * 7, 11)
    do i = 1, steps
       x = (i - 0.5d0) / steps + task
       area = area + x / (1.0d0 + x * x)
    end do
    area = area / steps
  end function integrate

  subroutine share_tasks()
    integer :: task
    double precision :: own
    own = 0.0d0
    do task = 1 + rank, tasks, ranks
       own = own + integrate(task)
    end do
    call MPI_Reduce(own, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  end subroutine share_tasks

  subroutine hand_out()
    integer :: task, done, status(MPI_STATUS_SIZE)
    double precision :: part
    total = 0.0d0
    task = 0
    done = 0
    do while (done < tasks + ranks - 1)
       call MPI_Recv(part, 1, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
       total = total + part
       done = done + 1
       task = task + 1
       if (task <= tasks) then
          call MPI_Send(task, 1, MPI_INTEGER, status(MPI_SOURCE), work, MPI_COMM_WORLD, ierr)
       else
          call MPI_Send(task, 1, MPI_INTEGER, status(MPI_SOURCE), stop_tag, MPI_COMM_WORLD, ierr)
       end if
    end do
  end subroutine hand_out

  subroutine serve()
    integer :: task, status(MPI_STATUS_SIZE)
    double precision :: part
    part = 0.0d0
    do
       call MPI_Send(part, 1, MPI_DOUBLE_PRECISION, 0, work, MPI_COMM_WORLD, ierr)
       call MPI_Recv(task, 1, MPI_INTEGER, 0, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
       if (status(MPI_TAG) == stop_tag) exit
       part = integrate(task)
    end do
  end subroutine serve
end program task_farm
