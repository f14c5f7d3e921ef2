// kstatus computes the status of objects with the library that kpt, Flux and Helm 4 use to wait for objects. It reads objects as JSON,
// one per line. For each object, it prints the status, a tab and the message.
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
	result, err := status.Compute(&object)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s\t%s\n", result.Status, result.Message)
	return err
}
