package planner

// assignment gives each row of a square matrix a column of its own so that the sum
// of the entries is largest. gain[i*n+j] is what row i gains in column j; to[i] is
// the column of row i. It takes O(n³) steps.
//
// Source: the shortest augmenting paths of Kuhn's Hungarian method, with
// potentials, as in Jonker & Volgenant, Computing 38 (1987), without their
// initialisation.
func assignment(gain []int64, n int) (to []int) {
	row := make([]int, n+1) // of each column, counted from 1; 0 is none
	u := make([]int64, n+1) // potentials of rows
	v := make([]int64, n+1) // and columns, of the costs -gain
	least := make([]int64, n+1)
	from := make([]int, n+1) // the column before on the path
	for i := 1; i <= n; i++ {
		done := make([]bool, n+1)
		for j := range least {
			least[j] = 1<<63 - 1
		}
		row[0] = i
		at := 0
		for row[at] != 0 {
			done[at] = true
			next, step := 0, int64(1<<63-1)
			for j := 1; j <= n; j++ {
				if done[j] {
					continue
				}
				if c := -gain[(row[at]-1)*n+j-1] - u[row[at]] - v[j]; c < least[j] {
					least[j], from[j] = c, at
				}
				if least[j] < step {
					next, step = j, least[j]
				}
			}
			for j := range done {
				if done[j] {
					u[row[j]] += step
					v[j] -= step
				} else if j > 0 {
					least[j] -= step
				}
			}
			at = next
		}
		for at != 0 {
			row[at], at = row[from[at]], from[at]
		}
	}
	to = make([]int, n)
	for j := 1; j <= n; j++ {
		to[row[j]-1] = j - 1
	}
	return to
}
