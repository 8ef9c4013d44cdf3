// C++: a vector, new and aligned new, all initialised by the main thread (a
// vector's constructor is the classic way to do so unawares) and then used in
// parallel.
// usage: cxx [elements] [steps]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace {

struct alignas(64) Particle {
	double x[4], v[4];
};

class Field {
public:
	explicit Field(long n) : values(n, 1.0), forces(new double[n]), particles(new Particle[n / 8])
	{
		for (long i = 0; i < n; i++)
			forces[i] = double(i % 17);
		for (long i = 0; i < n / 8; i++)
			for (int d = 0; d < 4; d++)
				particles[i].x[d] = double(i % 5), particles[i].v[d] = double(d) / 8;
	}

	void relax()
	{
#pragma omp parallel for schedule(static)
		for (long i = 0; i < long(values.size()); i++)
			values[i] = 0.5 * values[i] + 0.25 * forces[i];
	}

	void drift()
	{
#pragma omp parallel for schedule(static)
		for (long i = 0; i < long(values.size()) / 8; i++)
			for (int d = 0; d < 4; d++)
				particles[i].x[d] += 0.5 * particles[i].v[d];
	}

	// Sums over fixed blocks, so that the result does not depend on the threads.
	double checksum() const
	{
		constexpr int blocks = 64;
		const long n = long(values.size());
		double part[blocks], sum = 0;
#pragma omp parallel for schedule(static)
		for (int b = 0; b < blocks; b++) {
			part[b] = 0;
			for (long i = n * b / blocks; i < n * (b + 1) / blocks; i++)
				part[b] += values[i];
			for (long i = n / 8 * b / blocks; i < n / 8 * (b + 1) / blocks; i++)
				part[b] += particles[i].x[0] + particles[i].x[3];
		}
		for (double p : part)
			sum += p;
		return sum;
	}

private:
	std::vector<double> values;
	std::unique_ptr<double[]> forces;
	std::unique_ptr<Particle[]> particles;
};

} // namespace

int main(int argc, char **argv)
{
	const long n = argc > 1 ? std::atol(argv[1]) : 1L << 20;
	const int steps = argc > 2 ? std::atoi(argv[2]) : 8;
	Field field(n);

	for (int s = 0; s < steps; s++) {
		field.relax();
		field.drift();
	}
	std::printf("checksum %.17g\n", field.checksum());
	return 0;
}
