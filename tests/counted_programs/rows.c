/* A band matrix in compressed rows: the length of a row stands in data: ./rows N BAND */
#include <stdlib.h>

struct matrix {
    int rows, *begin, *column;
    double *value;
};

static void multiply(const struct matrix *m, const double *x, double *y)
{
    for (int row = 0; row < m->rows; row++) {
        double sum = 0.0;
        for (int k = m->begin[row]; k < m->begin[row + 1]; k++)
            sum += m->value[k] * x[m->column[k]];
        y[row] = sum;
    }
}

int main(int argc, char **argv)
{
    struct matrix m;
    int band = atoi(argv[2]);
    m.rows = atoi(argv[1]);
    m.begin = malloc((m.rows + 1) * sizeof(int));
    m.column = malloc(m.rows * (2 * band + 1) * sizeof(int));
    m.value = malloc(m.rows * (2 * band + 1) * sizeof(double));
    double *x = calloc(m.rows, sizeof(double)), *y = calloc(m.rows, sizeof(double));
    int used = 0;
    for (int row = 0; row < m.rows; row++) {
        m.begin[row] = used;
        int low = row - band < 0 ? 0 : row - band, high = row + band < m.rows ? row + band : m.rows - 1;
        for (int c = low; c <= high; c++) {
            m.column[used] = c;
            m.value[used++] = 1.0;
        }
    }
    m.begin[m.rows] = used;
    for (int again = 0; again < 4; again++)
        multiply(&m, x, y);
    return 0;
}
