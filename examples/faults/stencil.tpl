BEGIN_MODULE
NAME stencil
DESC "functions of the stencil example, and fsync, which the module posixio leaves out"
LANGUAGE C
void setup_mesh(void *run)
void serial_part(void *run, int iteration)
void compute_fluxes(void *run, int iteration)
void sum_array(void *run, int iteration)
void count_cells(void *run, int iteration)
void update_cells(void *run, int iteration)
void update_edges(void *run, int iteration)
void exchange_halo(void *run, int iteration)
void sweep_line(void *run, int iteration)
void write_output(void *run, int iteration)
void sum_residual(void *run, int iteration)
int fsync(int file)
END_MODULE
