#include <array>
#include <cstdio>
namespace sim {
std::array<std::array<float, 300>, 200> grid;
}
int main(int argc, char **)
{
    sim::grid[argc][2] = argc;
    double (*cells)[50] = new double[argc + 100][50];
    cells[argc][3] = sim::grid[1][argc];
    std::printf("%g\n", cells[1][3]);
}
