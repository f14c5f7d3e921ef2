//go:build tools

// Package tools imports helm-unittest, so that go.mod pins its version. The module is separate from the module of the other programs,
// because helm-unittest needs a newer version of the Kubernetes libraries.
package tools

import _ "github.com/helm-unittest/helm-unittest/cmd/helm-unittest"
