package advice

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/programs"
)

// Owners, padding and loss are those of the C library, at every page and for sizes
// that divide by nothing.
func TestLayoutIsTheLibrarys(t *testing.T) {
	api := filepath.Join(programs.Root(), "build", "lib", "libnumaopt-api.a")
	if _, err := os.Stat(api); err != nil {
		t.Skip("not built: ", err)
	}
	cases := []struct {
		dims  []int64
		elem  int64
		axes  []int
		nodes int
	}{
		{[]int64{126, 126}, 512, []int{0, 1}, 4},
		{[]int64{24, 24}, 4080, []int{0, 1}, 4},
		{[]int64{24, 25, 102}, 40, []int{1, 2}, 3},
		{[]int64{33, 7, 900}, 8, []int{0, 2}, 2},
		{[]int64{320, 2500}, 8, []int{1}, 4},
		{[]int64{64, 2048}, 8, []int{1}, 8},
		{[]int64{1000, 3}, 24, []int{0}, 7},
	}
	var code, want strings.Builder
	code.WriteString("#include <numaopt.h>\n#include <stdio.h>\n#include <stddef.h>\nvoid nmo_dist_pad(numaopt_dist *d);\nint main(void) {\n\tnumaopt_dist d; numaopt_report r; long sum;\n")
	for _, c := range cases {
		n := [3]int64{1, 1, 1}
		copy(n[:], c.dims)
		call := fmt.Sprintf("numaopt_%s_wise(%d, %d, %d, %d)", strings.ToLower(axisName[c.axes[0]]), n[0], n[1], n[2], c.elem)
		if len(c.axes) == 2 {
			call = fmt.Sprintf("numaopt_block_exclusive(%d, %d, %d, %d, NUMAOPT_%s, NUMAOPT_%s)", n[0], n[1], n[2], c.elem, axisName[c.axes[0]], axisName[c.axes[1]])
		}
		for _, pad := range []bool{false, true} {
			fmt.Fprintf(&code, "\td = %s; d.nodes = %d;\n", call, c.nodes)
			l := newLayout(c.dims, c.elem, c.axes, c.nodes)
			if pad {
				code.WriteString("\tnmo_dist_pad(&d);\n")
				l.pad()
			}
			code.WriteString("\tnumaopt_examine(&d, &r); sum = 0;\n\tfor (size_t o = 0; o < d.bytes; o += 1021) sum = (sum * 31 + numaopt_owner(&d, o)) % 1000003;\n\tprintf(\"%zu %.6f %ld\\n\", d.bytes, r.loss, sum);\n")
			sum := int64(0)
			for o := int64(0); o < l.bytes(); o += 1021 {
				sum = (sum*31 + int64(l.owner(o))) % 1000003
			}
			fmt.Fprintf(&want, "%d %.6f %d\n", l.bytes(), l.loss(0), sum)
		}
	}
	code.WriteString("\treturn 0;\n}\n")
	dir := t.TempDir()
	file, app := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	if err := os.WriteFile(file, []byte(code.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-I"+filepath.Join(programs.Root(), "runtime-c", "include"), file, api, "-o", app).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	got, err := exec.Command(app).Output()
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Errorf("the library has\n%sand here it is\n%s", got, want.String())
	}
}
