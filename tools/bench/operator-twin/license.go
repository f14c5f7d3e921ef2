// This file verifies licenses: a license is a compact JWS with an Ed25519 signature (config/contract/license.ts).
package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

type claims struct {
	Subject string   `json:"sub"`
	ID      string   `json:"jti"`
	Starts  int64    `json:"nbf"`
	Expires int64    `json:"exp"`
	Models  []string `json:"models"`
}

type jwks struct {
	Keys []struct {
		X string `json:"x"`
	} `json:"keys"`
}

func readLicense(token string, trusted jwks, now time.Time) (*claims, error) {
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return nil, errors.New("the license is not a signed token")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, err
	}
	for _, one := range trusted.Keys {
		key, err := base64.RawURLEncoding.DecodeString(one.X)
		if err != nil || !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), signature) {
			continue
		}
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			return nil, err
		}
		var found claims
		if err := json.Unmarshal(payload, &found); err != nil {
			return nil, err
		}
		if now.Unix() < found.Starts || now.Unix() >= found.Expires {
			return &found, errors.New("the license is not valid at this time")
		}
		return &found, nil
	}
	return nil, errors.New("the license is not signed by a trusted key")
}
