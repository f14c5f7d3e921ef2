// Command cosign signs and verifies artifacts of an OCI registry. It is the published program without the plugins of cloud key stores,
// which would double the time of the build. Keys in files and keyless signatures work.
package main

import (
	"log"

	"github.com/sigstore/cosign/v3/cmd/cosign/cli"
)

func main() {
	if err := cli.New().Execute(); err != nil {
		log.Fatal(err)
	}
}
