// kstatus reads objects, one JSON document a line, and prints for each what the library that kpt, Flux and Helm 4 wait by makes of it:
// its status and its message, with a tab between.
package main

import (
	"bufio"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

const longestLine = 16 << 20

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 64<<10), longestLine)
	for lines.Scan() {
		if err := judge(lines.Bytes()); err != nil {
			fmt.Fprintln(os.Stderr, "kstatus:", err)
			os.Exit(1)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func judge(line []byte) error {
	object := unstructured.Unstructured{}
	if err := object.UnmarshalJSON(line); err != nil {
		return err
	}
	found, err := status.Compute(&object)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s\t%s\n", found.Status, found.Message)
	return err
}
