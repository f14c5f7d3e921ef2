// This file contains functions for deep copies, like the functions that controller-gen generates.
package main

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func (in *Model) deepCopyInto(out *Model) {
	*out = *in
	if in.Replicas != nil {
		replicas := *in.Replicas
		out.Replicas = &replicas
	}
	in.Resources.DeepCopyInto(&out.Resources)
	if in.Accelerator != nil {
		accelerator := *in.Accelerator
		accelerator.NodeSelector = maps.Clone(in.Accelerator.NodeSelector)
		accelerator.Tolerations = append([]corev1.Toleration(nil), in.Accelerator.Tolerations...)
		out.Accelerator = &accelerator
	}
}

func copyConditions(in []metav1.Condition) []metav1.Condition {
	return append([]metav1.Condition(nil), in...)
}

func (in *TtsDeployment) DeepCopy() *TtsDeployment {
	out := new(TtsDeployment)
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Spec.API.Resources.DeepCopyInto(&out.Spec.API.Resources)
	if in.Spec.API.Keys != nil {
		keys := *in.Spec.API.Keys
		out.Spec.API.Keys = &keys
	}
	out.Spec.Models = make([]NamedModel, len(in.Spec.Models))
	for i := range in.Spec.Models {
		out.Spec.Models[i].Name = in.Spec.Models[i].Name
		in.Spec.Models[i].Model.deepCopyInto(&out.Spec.Models[i].Model)
	}
	if in.Status.Summary != nil {
		summary := *in.Status.Summary
		out.Status.Summary = &summary
	}
	if in.Status.License != nil {
		license := *in.Status.License
		out.Status.License = &license
	}
	out.Status.Models = append([]ModelStatus(nil), in.Status.Models...)
	out.Status.Conditions = copyConditions(in.Status.Conditions)
	return out
}

func (in *TtsDeployment) DeepCopyObject() runtime.Object { return in.DeepCopy() }

func (in *TtsDeploymentList) DeepCopyObject() runtime.Object {
	out := new(TtsDeploymentList)
	*out = *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]TtsDeployment, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopy()
	}
	return out
}

func (in *TtsModelPool) DeepCopy() *TtsModelPool {
	out := new(TtsModelPool)
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Spec.Model.deepCopyInto(&out.Spec.Model)
	out.Status.Conditions = copyConditions(in.Status.Conditions)
	return out
}

func (in *TtsModelPool) DeepCopyObject() runtime.Object { return in.DeepCopy() }

func (in *TtsModelPoolList) DeepCopyObject() runtime.Object {
	out := new(TtsModelPoolList)
	*out = *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]TtsModelPool, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopy()
	}
	return out
}
