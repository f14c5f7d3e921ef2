//go:build tools

// Package tools names the programs that are built from their own modules.
package tools

import _ "github.com/zegl/kube-score/cmd/kube-score"
