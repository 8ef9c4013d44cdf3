#include <stdio.h>
#include <stdlib.h>
#define NX 40
#define NY 30
typedef double vec[5];
typedef struct { double re, im; } complex16;
double u[NX][NY][20][5];
static vec w[NX][NY];
complex16 field[64][128];
double *line;
double (*rhs)[NY][5];

int main(int argc, char **argv)
{
    int n = argc + NX;
    rhs = malloc(n * sizeof *rhs);
    double (*lhs)[NY] = malloc(n * sizeof *lhs);
    double (*vla)[n] = malloc(n * sizeof *vla);
    line = malloc(n * sizeof *line);
    if (!rhs || !lhs || !vla || !line)
        return 1;
    u[1][2][3][4] = w[1][2][3] = field[1][2].re = rhs[0][1][2] = lhs[0][1] = vla[0][1] = line[0] = n;
    printf("%g %g %g %s\n", u[1][2][3][4] + w[n % 2][2][3] + field[1][2].re, rhs[0][n % 3][2] + lhs[0][n % 2], vla[0][n % 5] + line[n % 2], argv[0]);
    return 0;
}
