// Command registry is the registry of the CNCF project Distribution, without the storage drivers of clouds.
package main

import (
	"log"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

func main() {
	if err := registry.RootCmd.Execute(); err != nil {
		log.Fatal(err)
	}
}
