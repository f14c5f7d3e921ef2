// This file declares the two custom resources, with the fields that the benchmark uses.
package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "tts.svc.dev", Version: "v1alpha1"}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(groupVersion, &TtsDeployment{}, &TtsDeploymentList{}, &TtsModelPool{}, &TtsModelPoolList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}

type SecretRef struct {
	Name string `json:"name"`
	Key  string `json:"key,omitempty"`
}

type Keys struct {
	SecretRef SecretRef `json:"secretRef"`
}

type Drain struct {
	EndpointDelaySeconds int64 `json:"endpointDelaySeconds"`
	MaxStreamSeconds     int64 `json:"maxStreamSeconds"`
}

type Probe struct {
	FailureThreshold    int32 `json:"failureThreshold"`
	InitialDelaySeconds int32 `json:"initialDelaySeconds"`
	PeriodSeconds       int32 `json:"periodSeconds"`
	TimeoutSeconds      int32 `json:"timeoutSeconds"`
}

type Probes struct {
	Startup   Probe `json:"startup"`
	Readiness Probe `json:"readiness"`
	Liveness  Probe `json:"liveness"`
}

type Rollout struct {
	MaxSurge                int    `json:"maxSurge"`
	MaxUnavailable          int    `json:"maxUnavailable"`
	ProgressDeadlineSeconds int32  `json:"progressDeadlineSeconds"`
	WhenFull                string `json:"whenFull"`
}

type Accelerator struct {
	Count        int64               `json:"count"`
	ResourceName string              `json:"resourceName"`
	NodeSelector map[string]string   `json:"nodeSelector"`
	Tolerations  []corev1.Toleration `json:"tolerations"`
}

type Model struct {
	Kind                 string                      `json:"kind"`
	Image                string                      `json:"image,omitempty"`
	MaxConcurrentStreams int                         `json:"maxConcurrentStreams"`
	Replicas             *int32                      `json:"replicas,omitempty"`
	Resources            corev1.ResourceRequirements `json:"resources"`
	Accelerator          *Accelerator                `json:"accelerator,omitempty"`
	Drain                Drain                       `json:"drain"`
	Probes               Probes                      `json:"probes"`
	Rollout              Rollout                     `json:"rollout"`
}

type DisruptionBudget struct {
	Enabled        bool `json:"enabled"`
	MaxUnavailable int  `json:"maxUnavailable"`
}

type NamedModel struct {
	Name  string `json:"name"`
	Model `json:",inline"`
}

type TtsDeploymentSpec struct {
	Profile string `json:"profile"`
	API     struct {
		Image     string                      `json:"image,omitempty"`
		Replicas  int32                       `json:"replicas"`
		Resources corev1.ResourceRequirements `json:"resources"`
		Drain     Drain                       `json:"drain"`
		Keys      *Keys                       `json:"keys,omitempty"`
	} `json:"api"`
	License struct {
		SecretRef   SecretRef       `json:"secretRef"`
		GracePeriod metav1.Duration `json:"gracePeriod"`
	} `json:"license"`
	Models       []NamedModel `json:"models"`
	Availability struct {
		PodDisruptionBudget DisruptionBudget `json:"podDisruptionBudget"`
	} `json:"availability"`
}

type Capacity struct {
	Streams int `json:"streams"`
}

type ModelStatus struct {
	Name            string   `json:"name"`
	Replicas        int32    `json:"replicas"`
	ReadyReplicas   int32    `json:"readyReplicas"`
	CurrentRevision string   `json:"currentRevision,omitempty"`
	UpdateRevision  string   `json:"updateRevision,omitempty"`
	Capacity        Capacity `json:"capacity"`
}

type LicenseStatus struct {
	State     string `json:"state"`
	ID        string `json:"id,omitempty"`
	Licensee  string `json:"licensee,omitempty"`
	ExpiresAt string `json:"expiresAt,omitempty"`
}

type Summary struct {
	Models  string `json:"models"`
	Streams string `json:"streams"`
}

type TtsDeploymentStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Version            string             `json:"version,omitempty"`
	Endpoint           string             `json:"endpoint,omitempty"`
	Summary            *Summary           `json:"summary,omitempty"`
	License            *LicenseStatus     `json:"license,omitempty"`
	Models             []ModelStatus      `json:"models,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type TtsDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TtsDeploymentSpec   `json:"spec"`
	Status            TtsDeploymentStatus `json:"status,omitempty"`
}

type TtsDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TtsDeployment `json:"items"`
}

type TtsModelPoolSpec struct {
	Deployment          string           `json:"deployment"`
	Pool                string           `json:"pool"`
	PodDisruptionBudget DisruptionBudget `json:"podDisruptionBudget"`
	Model               `json:",inline"`
}

type TtsModelPoolStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Replicas           int32              `json:"replicas"`
	ReadyReplicas      int32              `json:"readyReplicas"`
	DesiredReplicas    int32              `json:"desiredReplicas"`
	CurrentRevision    string             `json:"currentRevision,omitempty"`
	UpdateRevision     string             `json:"updateRevision,omitempty"`
	Selector           string             `json:"selector,omitempty"`
	Capacity           Capacity           `json:"capacity"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type TtsModelPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TtsModelPoolSpec   `json:"spec"`
	Status            TtsModelPoolStatus `json:"status,omitempty"`
}

type TtsModelPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TtsModelPool `json:"items"`
}
