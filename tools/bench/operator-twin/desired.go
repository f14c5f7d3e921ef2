// This file renders the children like operator/desired, with the fields that the benchmark uses.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	manager         = "tts-operator"
	deploymentLabel = "tts.svc.dev/deployment"
	poolLabel       = "tts.svc.dev/pool"
	revisionLabel   = "tts.svc.dev/revision"
)

func labelsOf(deployment, component, pool string) map[string]string {
	labels := map[string]string{
		"app.kubernetes.io/name":       "svc-tts",
		"app.kubernetes.io/instance":   deployment,
		"app.kubernetes.io/component":  component,
		"app.kubernetes.io/part-of":    "svc-tts",
		"app.kubernetes.io/managed-by": manager,
		deploymentLabel:                deployment,
	}
	if pool != "" {
		labels[poolLabel] = pool
	}
	return labels
}

func metadata(owner client.Object, kind, deployment, name, component, pool string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: owner.GetNamespace(),
		Labels:    labelsOf(deployment, component, pool),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: groupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}
}

type ingredients struct {
	owner   *TtsDeployment
	token   string
	jwks    string
	ready   map[string]int32
	changed string
}

func deploymentChildren(in ingredients) []client.Object {
	owner := in.owner
	name := owner.Name
	api := name + "-api"
	meta := func(child, component string) metav1.ObjectMeta {
		return metadata(owner, "TtsDeployment", name, child, component, "")
	}
	tokenMeta := meta(name+"-token", "token")
	tokenMeta.Annotations = map[string]string{"tts.svc.dev/token-changed-at": in.changed}
	children := []client.Object{
		&corev1.Secret{TypeMeta: typeMeta("v1", "Secret"), ObjectMeta: tokenMeta, Type: corev1.SecretTypeOpaque,
			Data: map[string][]byte{"token": []byte(in.token), "accepted": []byte(in.token)}},
		serviceAccount(meta(api, "api")),
		serviceAccount(meta(name+"-model", "model")),
		&rbacv1.Role{TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "Role"), ObjectMeta: meta(api, "api"), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name + "-routing"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.RoleBinding{TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "RoleBinding"), ObjectMeta: meta(api, "api"),
			RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: api},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: api, Namespace: owner.Namespace}}},
		&corev1.ConfigMap{TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: meta(name+"-routing", "routing"),
			Data: map[string]string{"routing.json": routing(owner, in.ready), "jwks.json": in.jwks}},
		service(meta(api, "api"), 8000, apiSelector(name)),
	}
	budget := owner.Spec.Availability.PodDisruptionBudget
	if budget.Enabled {
		children = append(children, disruptionBudget(meta(api, "api"), budget, apiSelector(name)))
	}
	for _, model := range owner.Spec.Models {
		children = append(children, &TtsModelPool{
			TypeMeta:   typeMeta(groupVersion.String(), "TtsModelPool"),
			ObjectMeta: metadata(owner, "TtsDeployment", name, name+"-"+model.Name, "model", model.Name),
			Spec:       TtsModelPoolSpec{Deployment: name, Pool: model.Name, PodDisruptionBudget: budget, Model: model.Model},
		})
	}
	return append(children, apiDeployment(owner, meta(api, "api")))
}

func poolChildren(pool *TtsModelPool) []client.Object {
	spec := &pool.Spec
	meta := func() metav1.ObjectMeta {
		return metadata(pool, "TtsModelPool", spec.Deployment, pool.Name, "model", spec.Pool)
	}
	selector := poolSelector(pool)
	children := []client.Object{service(meta(), 8080, selector)}
	if spec.PodDisruptionBudget.Enabled {
		children = append(children, disruptionBudget(meta(), spec.PodDisruptionBudget, selector))
	}
	return append(children, modelDeployment(pool, meta(), selector))
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func apiSelector(name string) map[string]string {
	return map[string]string{deploymentLabel: name, "app.kubernetes.io/component": "api"}
}

func poolSelector(pool *TtsModelPool) map[string]string {
	return map[string]string{deploymentLabel: pool.Spec.Deployment, poolLabel: pool.Spec.Pool}
}

func serviceAccount(meta metav1.ObjectMeta) client.Object {
	return &corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: meta, AutomountServiceAccountToken: ptr.To(false)}
}

func service(meta metav1.ObjectMeta, port int32, selector map[string]string) client.Object {
	return &corev1.Service{TypeMeta: typeMeta("v1", "Service"), ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Selector: selector,
		Ports: []corev1.ServicePort{{Name: "http", Port: port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("http")}},
	}}
}

func disruptionBudget(meta metav1.ObjectMeta, budget DisruptionBudget, selector map[string]string) client.Object {
	return &policyv1.PodDisruptionBudget{TypeMeta: typeMeta("policy/v1", "PodDisruptionBudget"), ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             ptr.To(intstr.FromInt32(int32(budget.MaxUnavailable))),
			Selector:                   &metav1.LabelSelector{MatchLabels: selector},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		}}
}

type route struct {
	Pool    string `json:"pool"`
	Service string `json:"service"`
	Weight  int    `json:"weight"`
	Idle    bool   `json:"idle"`
}

type modelRoutes struct {
	Mist   []route `json:"mist,omitempty"`
	Mistv2 []route `json:"mistv2,omitempty"`
	Arcana []route `json:"arcana,omitempty"`
}

// Returns the routing table. A pool without ready pods gets weight 0 if another pool serves the model. If no pool has ready pods, all pools
// get the same weight.
func routing(owner *TtsDeployment, ready map[string]int32) string {
	var models modelRoutes
	for _, model := range owner.Spec.Models {
		entry := route{Pool: model.Name, Service: fmt.Sprintf("http://%s-%s:8080", owner.Name, model.Name), Idle: ptr.Deref(model.Replicas, 1) == 0}
		if ready[model.Name] > 0 {
			entry.Weight = 100
		}
		if model.Kind == "arcana" {
			models.Arcana = append(models.Arcana, entry)
		} else {
			models.Mist = append(models.Mist, entry)
			models.Mistv2 = append(models.Mistv2, entry)
		}
	}
	for _, routes := range [][]route{models.Mist, models.Mistv2, models.Arcana} {
		weigh(routes)
	}
	text, _ := json.Marshal(struct {
		Version int         `json:"version"`
		Profile string      `json:"profile"`
		Models  modelRoutes `json:"models"`
	}{1, owner.Spec.Profile, models})
	return string(text)
}

func weigh(routes []route) {
	for _, one := range routes {
		if one.Weight > 0 {
			return
		}
	}
	for i := range routes {
		routes[i].Weight = 100
	}
}

func apiDeployment(owner *TtsDeployment, meta metav1.ObjectMeta) client.Object {
	spec := &owner.Spec
	container := corev1.Container{
		Name: "api", Image: spec.API.Image, Args: []string{"api"},
		Ports: []corev1.ContainerPort{port("http", 8000)},
		Env: []corev1.EnvVar{
			{Name: "SVC_TTS_PORT", Value: "8000"},
			{Name: "SVC_TTS_ROUTING_CONFIGMAP", Value: owner.Name + "-routing"},
			{Name: "SVC_TTS_TOKEN_DIR", Value: "/var/run/svc-tts/token"},
			{Name: "SVC_TTS_LICENSE_FILE", Value: "/var/run/svc-tts/license/" + spec.License.SecretRef.Key},
			{Name: "SVC_TTS_LICENSE_KEYS_FILE", Value: "/etc/svc-tts/license-keys/jwks.json"},
			{Name: "SVC_TTS_LICENSE_GRACE_SECONDS", Value: strconv.Itoa(int(spec.License.GracePeriod.Seconds()))},
			{Name: "SVC_TTS_KEYS_FILE", Value: "/var/run/svc-tts/keys/keys.yaml"},
			{Name: "SVC_TTS_DRAIN_SECONDS", Value: strconv.FormatInt(spec.API.Drain.MaxStreamSeconds, 10)},
			fromField("POD_NAMESPACE", "metadata.namespace"), fromField("POD_NAME", "metadata.name"),
		},
		Resources: spec.API.Resources,
		VolumeMounts: []corev1.VolumeMount{
			{Name: "token", MountPath: "/var/run/svc-tts/token", ReadOnly: true},
			{Name: "license", MountPath: "/var/run/svc-tts/license", ReadOnly: true},
			{Name: "license-keys", MountPath: "/etc/svc-tts/license-keys", ReadOnly: true},
			{Name: "keys", MountPath: "/var/run/svc-tts/keys", ReadOnly: true},
			{Name: "tmp", MountPath: "/tmp"},
		},
		StartupProbe:    probe("/livez", Probe{PeriodSeconds: 1, FailureThreshold: 120, TimeoutSeconds: 2}, nil),
		ReadinessProbe:  probe("/ready", Probe{PeriodSeconds: 3, FailureThreshold: 2, TimeoutSeconds: 3}, nil),
		LivenessProbe:   probe("/livez", Probe{PeriodSeconds: 10, FailureThreshold: 6, TimeoutSeconds: 5}, ptr.To(int64(10))),
		Lifecycle:       drainHook(spec.API.Drain),
		SecurityContext: containerSecurity(),
	}
	pod := podSpec(owner.Name+"-api", true, spec.API.Drain, container)
	pod.Volumes = []corev1.Volume{
		secretVolume("token", owner.Name+"-token", nil, nil),
		secretVolume("license", spec.License.SecretRef.Name, ptr.To(true), []corev1.KeyToPath{{Key: spec.License.SecretRef.Key, Path: spec.License.SecretRef.Key}}),
		{Name: "license-keys", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: owner.Name + "-routing"},
			Items:                []corev1.KeyToPath{{Key: "jwks.json", Path: "jwks.json"}}}}},
	}
	if spec.API.Keys != nil {
		pod.Volumes = append(pod.Volumes, secretVolume("keys", spec.API.Keys.SecretRef.Name, ptr.To(true), nil))
	}
	pod.Volumes = append(pod.Volumes, emptyDir("tmp", "", "1Gi"))
	settings := []any{spec.API.Image, spec.API.Resources, spec.API.Drain, spec.API.Keys, spec.License}
	return workload(meta, pod, settings, spec.API.Replicas, 600, 1, 0, apiSelector(owner.Name))
}

func modelDeployment(pool *TtsModelPool, meta metav1.ObjectMeta, selector map[string]string) client.Object {
	spec := &pool.Spec
	alive := "/ping"
	container := corev1.Container{
		Name: spec.Kind, Image: spec.Image, Args: []string{spec.Kind},
		Ports: []corev1.ContainerPort{port("http", 8080)},
		Env: []corev1.EnvVar{
			{Name: "SVC_TTS_PORT", Value: "8080"},
			{Name: "SVC_TTS_TOKEN_DIR", Value: "/var/run/svc-tts/token"},
			{Name: "SVC_TTS_MAX_CONCURRENT_STREAMS", Value: strconv.Itoa(spec.MaxConcurrentStreams)},
			{Name: "SVC_TTS_DRAIN_SECONDS", Value: strconv.FormatInt(spec.Drain.MaxStreamSeconds, 10)},
			fromField("POD_NAMESPACE", "metadata.namespace"), fromField("POD_NAME", "metadata.name"),
		},
		Resources:       *spec.Resources.DeepCopy(),
		VolumeMounts:    []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/svc-tts/token", ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"}},
		Lifecycle:       drainHook(spec.Drain),
		SecurityContext: containerSecurity(),
	}
	volumes := []corev1.Volume{secretVolume("token", spec.Deployment+"-token", nil, nil), emptyDir("tmp", "", "1Gi")}
	var tolerations []corev1.Toleration
	if spec.Kind == "arcana" {
		alive = "/readyz"
		container.Env = append(container.Env, corev1.EnvVar{Name: "GENERATOR_VLLM_PORT", Value: "8001"})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "shared-memory", MountPath: "/dev/shm"})
		volumes = append(volumes, emptyDir("shared-memory", corev1.StorageMediumMemory, "2Gi"))
	}
	if accelerator := spec.Accelerator; accelerator != nil {
		container.Resources.Limits = corev1.ResourceList{corev1.ResourceName(accelerator.ResourceName): *resource.NewQuantity(accelerator.Count, resource.DecimalSI)}
		tolerations = append([]corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}, accelerator.Tolerations...)
	}
	container.StartupProbe = probe(alive, spec.Probes.Startup, nil)
	container.ReadinessProbe = probe("/ready", spec.Probes.Readiness, nil)
	container.LivenessProbe = probe(alive, spec.Probes.Liveness, ptr.To(int64(10)))
	pod := podSpec(spec.Deployment+"-model", false, spec.Drain, container)
	pod.Volumes = volumes
	pod.Tolerations = tolerations
	if spec.Accelerator != nil {
		pod.NodeSelector = spec.Accelerator.NodeSelector
	}
	settings := []any{spec.Kind, spec.Image, spec.MaxConcurrentStreams, spec.Resources, spec.Accelerator, spec.Drain, spec.Probes}
	return workload(meta, pod, settings, ptr.Deref(spec.Replicas, 1), spec.Rollout.ProgressDeadlineSeconds, spec.Rollout.MaxSurge, spec.Rollout.MaxUnavailable, selector)
}

func podSpec(account string, mountAccount bool, drain Drain, container corev1.Container) corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName: account, AutomountServiceAccountToken: ptr.To(mountAccount), EnableServiceLinks: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(65532)), RunAsGroup: ptr.To(int64(65532)), FSGroup: ptr.To(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		TerminationGracePeriodSeconds: ptr.To(drain.EndpointDelaySeconds + drain.MaxStreamSeconds + 15),
		Containers:                    []corev1.Container{container},
	}
}

// Returns a Deployment. Like the operator, it stores the template and its revision in annotations.
func workload(meta metav1.ObjectMeta, pod corev1.PodSpec, settings any, replicas, deadline int32, surge, unavailable int, selector map[string]string) client.Object {
	marks := make(map[string]string, len(meta.Labels)+1)
	for name, value := range meta.Labels {
		marks[name] = value
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: marks}, Spec: pod}
	revision := hashOf(template)
	marks[revisionLabel] = revision
	text, _ := json.Marshal(template)
	meta.Annotations = map[string]string{
		"tts.svc.dev/spec-hash": hashOf(settings), "tts.svc.dev/revision": revision, "tts.svc.dev/pod-template": string(text),
	}
	return &appsv1.Deployment{TypeMeta: typeMeta("apps/v1", "Deployment"), ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(replicas), RevisionHistoryLimit: ptr.To(int32(5)), ProgressDeadlineSeconds: ptr.To(deadline),
		Selector: &metav1.LabelSelector{MatchLabels: selector},
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromInt(surge)), MaxUnavailable: ptr.To(intstr.FromInt(unavailable)),
		}},
		Template: template,
	}}
}

func hashOf(value any) string {
	text, _ := json.Marshal(value)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:10]
}

func port(name string, number int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func probe(path string, times Probe, grace *int64) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
		SuccessThreshold: 1, // The comparison needs this default of the API server.
		FailureThreshold: times.FailureThreshold, InitialDelaySeconds: times.InitialDelaySeconds, PeriodSeconds: times.PeriodSeconds,
		TimeoutSeconds: times.TimeoutSeconds, TerminationGracePeriodSeconds: grace,
	}
}

func drainHook(drain Drain) *corev1.Lifecycle {
	return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drain.EndpointDelaySeconds}}}
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

func secretVolume(name, secret string, optional *bool, items []corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: ptr.To(int32(288)), Optional: optional, Items: items}}}
}

func emptyDir(name string, medium corev1.StorageMedium, limit string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium, SizeLimit: ptr.To(resource.MustParse(limit))}}}
}
