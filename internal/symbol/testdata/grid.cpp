#include <vector>
#include <cstdio>
namespace ns {
double table[5000];
struct Grid {
    std::vector<double> a, b;
    Grid(int n);
    void sweep();
};
Grid::Grid(int n) : a(n), b(n, 1.0) {}
void Grid::sweep()
{
    #pragma omp parallel for
    for (size_t i = 0; i < a.size(); i++)
        a[i] += b[i] + table[i % 5000];
}
}
int main()
{
    ns::Grid g(100000);
    double *p = new double[50000];
    p[3] = 2;
    g.sweep();
    printf("%g\n", g.a[3] + p[3]);
}
