package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dependencies contains the dependencies of both controllers.
type dependencies struct {
	client.Client
	scheme   *runtime.Scheme
	recorder events.EventRecorder
	trusted  jwks
	jwksText string
}

type deploymentReconciler struct{ dependencies }

func (r *deploymentReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var owner TtsDeployment
	if err := r.Get(ctx, request.NamespacedName, &owner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !owner.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	license, refused := r.license(ctx, &owner)
	if err := r.keysExist(ctx, &owner); err != nil {
		return ctrl.Result{}, err
	}
	token, changed, err := r.token(ctx, &owner)
	if err != nil {
		return ctrl.Result{}, err
	}
	pools, err := r.pools(ctx, &owner)
	if err != nil {
		return ctrl.Result{}, err
	}
	if refused == nil {
		ready := map[string]int32{}
		for _, pool := range pools {
			ready[pool.Spec.Pool] = pool.Status.ReadyReplicas
		}
		for _, child := range deploymentChildren(ingredients{owner: &owner, token: token, changed: changed, jwks: r.jwksText, ready: ready}) {
			if err := r.ensure(ctx, child); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	if err := r.updateStatus(ctx, &owner, license, refused, pools); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: time.Hour}, nil
}

func (h *dependencies) license(ctx context.Context, owner *TtsDeployment) (*claims, error) {
	var secret corev1.Secret
	ref := owner.Spec.License.SecretRef
	if err := h.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: ref.Name}, &secret); err != nil {
		return nil, err
	}
	return readLicense(string(secret.Data[ref.Key]), h.trusted, time.Now())
}

func (r *deploymentReconciler) keysExist(ctx context.Context, owner *TtsDeployment) error {
	if owner.Spec.API.Keys == nil {
		return nil
	}
	var secret corev1.Secret
	return r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Spec.API.Keys.SecretRef.Name}, &secret)
}

func (r *deploymentReconciler) token(ctx context.Context, owner *TtsDeployment) (string, string, error) {
	var secret corev1.Secret
	err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name + "-token"}, &secret)
	if err == nil {
		return string(secret.Data["token"]), secret.Annotations["tts.svc.dev/token-changed-at"], nil
	}
	if !apierrors.IsNotFound(err) {
		return "", "", err
	}
	fresh := make([]byte, 32)
	if _, err := rand.Read(fresh); err != nil {
		return "", "", err
	}
	return base64.RawURLEncoding.EncodeToString(fresh), time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), nil
}

func (r *deploymentReconciler) pools(ctx context.Context, owner *TtsDeployment) ([]TtsModelPool, error) {
	var pools []TtsModelPool
	for _, model := range owner.Spec.Models {
		var pool TtsModelPool
		err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name + "-" + model.Name}, &pool)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		pools = append(pools, pool)
	}
	return pools, nil
}

func (r *deploymentReconciler) updateStatus(ctx context.Context, owner *TtsDeployment, license *claims, refused error, pools []TtsModelPool) error {
	var api appsv1.Deployment
	err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name + "-api"}, &api)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	before := owner.DeepCopy()
	status := &owner.Status
	status.ObservedGeneration = owner.Generation
	status.Version = "0.1.0"
	status.Endpoint = fmt.Sprintf("http://%s-api.%s.svc:8000", owner.Name, owner.Namespace)
	status.License = &LicenseStatus{State: "invalid"}
	if license != nil {
		status.License = &LicenseStatus{State: "valid", ID: license.ID, Licensee: license.Subject, ExpiresAt: time.Unix(license.Expires, 0).UTC().Format(time.RFC3339)}
	}
	status.Models = nil
	serving, streams := 0, 0
	for _, model := range owner.Spec.Models {
		entry := ModelStatus{Name: model.Name}
		for _, pool := range pools {
			if pool.Spec.Pool != model.Name {
				continue
			}
			found := pool.Status
			entry = ModelStatus{Name: model.Name, Replicas: found.Replicas, ReadyReplicas: found.ReadyReplicas, CurrentRevision: found.CurrentRevision, UpdateRevision: found.UpdateRevision, Capacity: found.Capacity}
			if meta.IsStatusConditionTrue(found.Conditions, "Ready") && found.ObservedGeneration == pool.Generation && pool.Spec.Image == model.Image {
				serving++
			}
			streams += found.Capacity.Streams
		}
		status.Models = append(status.Models, entry)
	}
	status.Summary = &Summary{Models: fmt.Sprintf("%d/%d", serving, len(owner.Spec.Models)), Streams: strconv.Itoa(streams)}
	models := serving == len(owner.Spec.Models)
	apiReady := complete(&api)
	condition := func(kind string, holds bool, reason, message string) {
		setCondition(&status.Conditions, owner.Generation, kind, holds, reason, message)
	}
	ready := models && apiReady && refused == nil
	condition("Ready", ready, pick(ready, "Serving", "Progressing"), pick(ready, "API and models serve as specified.", "Some parts are not ready."))
	condition("Reconciling", !ready, pick(ready, "Settled", "Progressing"), pick(ready, "The reconciliation is complete; no action is needed.", "A rollout is in progress."))
	condition("Stalled", refused != nil, pick(refused == nil, "Settled", "LicenseInvalid"), pick(refused == nil, "The reconciliation is complete; no action is needed.", fmt.Sprint(refused)))
	condition("LicenseValid", refused == nil, pick(refused == nil, "Valid", "Invalid"), pick(refused == nil, "The license is valid.", fmt.Sprint(refused)))
	condition("ModelsReady", models, pick(models, "Serving", "Progressing"), pick(models, "Every pool serves with its current settings.", "Pods are starting."))
	condition("ApiReady", apiReady, pick(apiReady, "Serving", "Progressing"), pick(apiReady, "Every API pod serves with its current settings.", "Pods are starting."))
	condition("RolloutHealthy", true, pick(ready, "Complete", "Progressing"), pick(ready, "Every pod has its current settings.", "A rollout is in progress."))
	condition("RevisionOutdated", false, "Current", "All pods have the pod template of this operator version.")
	if equality.Semantic.DeepEqual(before.Status, owner.Status) {
		return nil
	}
	if err := r.Status().Patch(ctx, owner, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.announce(owner, before.Status.Conditions, owner.Status.Conditions)
	return nil
}

type poolReconciler struct{ dependencies }

func (r *poolReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pool TtsModelPool
	if err := r.Get(ctx, request.NamespacedName, &pool); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var owner TtsDeployment
	if err := r.Get(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: pool.Spec.Deployment}, &owner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !pool.DeletionTimestamp.IsZero() || !owner.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if _, refused := r.license(ctx, &owner); refused == nil {
		for _, child := range poolChildren(&pool) {
			if err := r.ensure(ctx, child); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	if err := r.updateStatus(ctx, &pool); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: time.Hour}, nil
}

func (r *poolReconciler) updateStatus(ctx context.Context, pool *TtsModelPool) error {
	var deployment appsv1.Deployment
	if err := r.Get(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: pool.Name}, &deployment); client.IgnoreNotFound(err) != nil {
		return err
	}
	trouble, err := r.trouble(ctx, pool)
	if err != nil {
		return err
	}
	before := pool.DeepCopy()
	status := &pool.Status
	done := complete(&deployment) && deployment.Spec.Template.Spec.Containers[0].Image == pool.Spec.Image
	status.ObservedGeneration = pool.Generation
	status.Replicas = deployment.Status.Replicas
	status.ReadyReplicas = deployment.Status.ReadyReplicas
	status.DesiredReplicas = ptrOr(pool.Spec.Replicas, 1)
	status.Selector = deploymentLabel + "=" + pool.Spec.Deployment + "," + poolLabel + "=" + pool.Spec.Pool
	status.Capacity.Streams = int(deployment.Status.ReadyReplicas) * pool.Spec.MaxConcurrentStreams
	status.UpdateRevision = deployment.Annotations["tts.svc.dev/revision"]
	if done {
		status.CurrentRevision = status.UpdateRevision
	}
	waiting := trouble
	if waiting == "" {
		waiting = "Pods are starting."
	}
	condition := func(kind string, holds bool, reason, message string) {
		setCondition(&status.Conditions, pool.Generation, kind, holds, reason, message)
	}
	condition("Ready", done, pick(done, "Serving", "Progressing"), pick(done, "All pods with the current settings are ready.", waiting))
	condition("Reconciling", !done, pick(done, "Settled", "Progressing"), pick(done, "The reconciliation is complete; no action is needed.", waiting))
	condition("Stalled", false, "Settled", "The reconciliation is complete; no action is needed.")
	condition("RevisionOutdated", false, "Current", "The pods have the pod template of this operator version.")
	if equality.Semantic.DeepEqual(before.Status, pool.Status) {
		return nil
	}
	if err := r.Status().Patch(ctx, pool, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.announce(pool, before.Status.Conditions, pool.Status.Conditions)
	return nil
}

// trouble returns the reason why a pod does not start, or an empty text if no pod has a problem.
func (r *poolReconciler) trouble(ctx context.Context, pool *TtsModelPool) (string, error) {
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(pool.Namespace), client.MatchingFields{podsByPool: pool.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return "", err
	}
	for _, pod := range pods.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				return condition.Message, nil
			}
		}
	}
	return "", nil
}

// ensure applies an object by server-side apply, if the cached object differs from the desired fields.
func (h *dependencies) ensure(ctx context.Context, desired client.Object) error {
	live := desired.DeepCopyObject().(client.Object)
	err := h.Get(ctx, client.ObjectKeyFromObject(desired), live)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && isSame(desired, live) {
		return nil
	}
	// The objects are typed, because apply configurations for the custom resources would have to be generated.
	return h.Patch(ctx, desired, client.Apply, client.FieldOwner(manager), client.ForceOwnership)
}

func isSame(desired, live client.Object) bool {
	for _, pair := range [][2]map[string]string{{desired.GetLabels(), live.GetLabels()}, {desired.GetAnnotations(), live.GetAnnotations()}} {
		if !equality.Semantic.DeepDerivative(pair[0], pair[1]) {
			return false
		}
	}
	// In metadata and status, DeepDerivative would compare zero numbers and times, so only the specs are compared.
	switch wanted := desired.(type) {
	case *appsv1.Deployment:
		return equality.Semantic.DeepDerivative(wanted.Spec, live.(*appsv1.Deployment).Spec)
	case *policyv1.PodDisruptionBudget:
		return equality.Semantic.DeepDerivative(wanted.Spec, live.(*policyv1.PodDisruptionBudget).Spec)
	case *TtsModelPool:
		return equality.Semantic.DeepDerivative(wanted.Spec, live.(*TtsModelPool).Spec)
	}
	copied := desired.DeepCopyObject().(client.Object)
	copied.SetCreationTimestamp(live.GetCreationTimestamp())
	copied.SetGeneration(live.GetGeneration())
	copied.GetObjectKind().SetGroupVersionKind(live.GetObjectKind().GroupVersionKind())
	return equality.Semantic.DeepDerivative(copied, live)
}

// announce records events like the operator: for changed conditions and for new reasons of a problem, but not for normal progress.
func (h *dependencies) announce(owner runtime.Object, before, after []metav1.Condition) {
	for _, condition := range after {
		known := meta.FindStatusCondition(before, condition.Type)
		bad := (condition.Status == metav1.ConditionTrue) == (condition.Type == "Stalled" || condition.Type == "RevisionOutdated")
		turned := known != nil && (known.Status != condition.Status || bad && known.Reason != condition.Reason)
		if condition.Type == "Reconciling" || !turned && !(known == nil && bad) {
			continue
		}
		h.recorder.Eventf(owner, nil, corev1.EventTypeNormal, condition.Reason, condition.Type, condition.Message)
	}
}

func complete(deployment *appsv1.Deployment) bool {
	status := &deployment.Status
	replicas := ptrOr(deployment.Spec.Replicas, 1)
	return deployment.Name != "" && status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas == replicas && status.Replicas == replicas && status.AvailableReplicas == replicas
}

func setCondition(conditions *[]metav1.Condition, generation int64, kind string, holds bool, reason, message string) {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation})
}

func pick(holds bool, yes, no string) string {
	if holds {
		return yes
	}
	return no
}

func ptrOr(value *int32, otherwise int32) int32 {
	if value == nil {
		return otherwise
	}
	return *value
}
