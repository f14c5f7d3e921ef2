// deviceplugin advertises simulated GPUs to the kubelet of this machine. A container with a GPU gets only an environment variable. The
// number of GPUs is read from a file and may change at any time, so that a test can remove GPUs of a node.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const pollInterval = 500 * time.Millisecond

type plugin struct {
	dp.UnimplementedDevicePluginServer
	countFile string
}

func (p *plugin) count() (int, error) {
	text, err := os.ReadFile(p.countFile)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s must contain the number of devices, not %q", p.countFile, text)
	}
	return n, nil
}

func (p *plugin) GetDevicePluginOptions(context.Context, *dp.Empty) (*dp.DevicePluginOptions, error) {
	return &dp.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *dp.Empty, stream dp.DevicePlugin_ListAndWatchServer) error {
	sent := -1
	for stream.Context().Err() == nil {
		n, err := p.count()
		if err != nil {
			log.Print(err)
		} else if n != sent {
			if err := stream.Send(devices(n)); err != nil {
				return err
			}
			log.Printf("advertised %d devices", n)
			sent = n
		}
		time.Sleep(pollInterval)
	}
	return nil
}

func devices(n int) *dp.ListAndWatchResponse {
	response := &dp.ListAndWatchResponse{}
	for i := range n {
		response.Devices = append(response.Devices, &dp.Device{ID: fmt.Sprintf("GPU-fake-%d", i), Health: dp.Healthy})
	}
	return response
}

func (p *plugin) Allocate(_ context.Context, request *dp.AllocateRequest) (*dp.AllocateResponse, error) {
	response := &dp.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &dp.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		})
	}
	return response, nil
}

func register(socket, resource string) error {
	connection, err := grpc.NewClient("unix://"+dp.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = dp.NewRegistrationClient(connection).Register(ctx, &dp.RegisterRequest{
		Version: dp.Version, Endpoint: filepath.Base(socket), ResourceName: resource,
	})
	return err
}

// serve registers the plugin and serves the kubelet until the kubelet restarts. A restart of the kubelet removes the sockets of plugins.
func serve(p *plugin, socket, resource string) error {
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	defer server.Stop()
	dp.RegisterDevicePluginServer(server, p)
	go func() {
		if err := server.Serve(listener); err != nil {
			log.Print("serve: ", err)
		}
	}()
	if err := register(socket, resource); err != nil {
		return err
	}
	log.Printf("registered %s", resource)
	for {
		time.Sleep(pollInterval)
		if _, err := os.Stat(socket); err != nil {
			return fmt.Errorf("the kubelet restarted: %w", err)
		}
	}
}

func main() {
	countFile := flag.String("count-file", "", "file with the number of devices, which is read twice a second")
	resource := flag.String("resource", "nvidia.com/gpu", "resource name")
	flag.Parse()
	p := &plugin{countFile: *countFile}
	if _, err := p.count(); err != nil {
		log.Fatal(err)
	}
	socket := filepath.Join(dp.DevicePluginPath, "svc-tts-gpu.sock")
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		os.Remove(socket)
		os.Exit(0)
	}()
	for {
		log.Print(serve(p, socket, *resource))
		time.Sleep(time.Second)
	}
}
