//go:build tools

// Package tools names the program that is built from its own module, apart from the others for its newer Kubernetes.
package tools

import _ "github.com/helm-unittest/helm-unittest/cmd/helm-unittest"
