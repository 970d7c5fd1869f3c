/* Cholesky factorization of a band matrix, its sizes in a structure: ./band N WIDTH */
#include <math.h>
#include <stdlib.h>
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
typedef struct { int n, bw; double *v; } band_t;
static void cholesky(band_t *m) {
  int n = m->n, w = m->bw;
  for (int j = 0; j < n; j++) {
    double s = m->v[j * (w + 1)];
    for (int k = MAX(0, j - w); k < j; k++) s -= m->v[k * (w + 1) + j - k] * m->v[k * (w + 1) + j - k];
    m->v[j * (w + 1)] = sqrt(s);
    for (int i = j + 1; i <= MIN(n - 1, j + w); i++) {
      double t = m->v[j * (w + 1) + i - j];
      for (int k = MAX(0, i - w); k < j; k++) t -= m->v[k * (w + 1) + i - k] * m->v[k * (w + 1) + j - k];
      m->v[j * (w + 1) + i - j] = t / m->v[j * (w + 1)];
    }
  }
}
int main(int argc, char **argv) {
  band_t m;
  m.n = (int)strtol(argv[1], NULL, 10);
  m.bw = (int)strtol(argv[2], NULL, 10);
  m.v = malloc((size_t)m.n * (m.bw + 1) * sizeof(double));
  int i, d;
  for (i = 0; i < m.n; i++)
    for (d = 0; d <= m.bw; d++)
      m.v[i * (m.bw + 1) + d] = d == 0 ? 10.0 * m.bw + 1 : 1.0 / (d + 1);
  cholesky(&m);
  return m.v[0] < 0;
}
