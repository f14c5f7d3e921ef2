// The operator's twin: an equivalent operator on controller-runtime. It creates the same children and statuses, so that the benchmark can
// compare both operators. The twin has no canaries, no scaling and no token rotation, so its figures do not include their cost.
package main

import (
	"context"
	"encoding/json"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	podsByPool      = "pool"
	deploymentsByIt = "secret"
	workers         = 8
)

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		ctrl.Log.Error(err, "the operator twin ended with an error")
		os.Exit(1)
	}
}

func run() error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(os.Getenv("TTS_LICENSE_KEYS_FILE"))
	if err != nil {
		return err
	}
	namespace := os.Getenv("POD_NAMESPACE")
	config := ctrl.GetConfigOrDie()
	// The client has no rate limit, like the client of the operator.
	config.QPS = -1
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultTransform: cache.TransformStripManagedFields()},
		Metrics:                       metricsserver.Options{BindAddress: ":" + os.Getenv("TTS_METRICS_PORT")},
		LeaderElection:                true,
		LeaderElectionID:              "tts-operator",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	shared := dependencies{Client: mgr.GetClient(), scheme: scheme, recorder: mgr.GetEventRecorder(manager), jwksText: string(text)}
	if err := json.Unmarshal(text, &shared.trusted); err != nil {
		return err
	}
	if err := addControllers(mgr, shared); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func addControllers(mgr ctrl.Manager, shared dependencies) error {
	ctx := context.Background()
	index := mgr.GetFieldIndexer()
	err := index.IndexField(ctx, &corev1.Pod{}, podsByPool, func(object client.Object) []string {
		pool := object.GetLabels()[poolLabel]
		if pool == "" {
			return nil
		}
		return []string{object.GetLabels()[deploymentLabel] + "-" + pool}
	})
	if err != nil {
		return err
	}
	err = index.IndexField(ctx, &TtsDeployment{}, deploymentsByIt, func(object client.Object) []string {
		spec := &object.(*TtsDeployment).Spec
		names := []string{spec.License.SecretRef.Name}
		if spec.API.Keys != nil {
			names = append(names, spec.API.Keys.SecretRef.Name)
		}
		return names
	})
	if err != nil {
		return err
	}
	options := controller.Options{MaxConcurrentReconciles: workers}
	err = ctrl.NewControllerManagedBy(mgr).Named("deployment").For(&TtsDeployment{}).
		Owns(&corev1.ServiceAccount{}).Owns(&rbacv1.Role{}).Owns(&rbacv1.RoleBinding{}).Owns(&corev1.ConfigMap{}).Owns(&corev1.Service{}).
		Owns(&corev1.Secret{}).Owns(&policyv1.PodDisruptionBudget{}).Owns(&appsv1.Deployment{}).Owns(&TtsModelPool{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(followers(shared.Client))).
		WithOptions(options).Complete(&deploymentReconciler{shared})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("pool").For(&TtsModelPool{}).
		Owns(&corev1.Service{}).Owns(&policyv1.PodDisruptionBudget{}).Owns(&appsv1.Deployment{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(poolOfPod)).
		WithOptions(options).Complete(&poolReconciler{shared})
}

func followers(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, secret client.Object) []reconcile.Request {
		var found TtsDeploymentList
		if err := reader.List(ctx, &found, client.InNamespace(secret.GetNamespace()), client.MatchingFields{deploymentsByIt: secret.GetName()}); err != nil {
			return nil
		}
		requests := make([]reconcile.Request, len(found.Items))
		for i := range found.Items {
			requests[i].NamespacedName = client.ObjectKeyFromObject(&found.Items[i])
		}
		return requests
	}
}

func poolOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	labels := pod.GetLabels()
	if labels[poolLabel] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: labels[deploymentLabel] + "-" + labels[poolLabel]}}}
}
