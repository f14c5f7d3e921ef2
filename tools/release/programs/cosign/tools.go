//go:build tools

// Package tools imports crane, so that go.mod pins its version.
package main

import _ "github.com/google/go-containerregistry/cmd/crane"
