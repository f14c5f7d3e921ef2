//go:build tools

// Package tools imports kube-score, so that go.mod pins its version.
package tools

import _ "github.com/zegl/kube-score/cmd/kube-score"
