// argohealth runs a health check of Argo CD like Argo CD: the check is a Lua script, which gopher-lua runs with the object as `obj`.
// argohealth reads objects as JSON, one per line. For each object, it prints the status, a tab and the message.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
)

const longestLine = 16 << 20

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "argohealth:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: argohealth SCRIPT.lua <objects.jsonl")
	}
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 64<<10), longestLine)
	for lines.Scan() {
		if err := judge(string(script), lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// judge opens only the libraries that Argo CD opens. They give scripts no access to files and programs.
func judge(script string, line []byte) error {
	var object any
	if err := json.Unmarshal(line, &object); err != nil {
		return err
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
		lua.StringLibName: lua.OpenString, lua.MathLibName: lua.OpenMath,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return err
		}
	}
	state.SetGlobal("obj", valueOf(state, object))
	if err := state.DoString(script); err != nil {
		return err
	}
	result, isTable := state.Get(-1).(*lua.LTable)
	if !isTable {
		return fmt.Errorf("the script must return a table, but returned a %s", state.Get(-1).Type())
	}
	_, err := fmt.Printf("%s\t%s\n", result.RawGetString("status"), result.RawGetString("message"))
	return err
}

func valueOf(state *lua.LState, value any) lua.LValue {
	switch known := value.(type) {
	case string:
		return lua.LString(known)
	case float64:
		return lua.LNumber(known)
	case bool:
		return lua.LBool(known)
	case []any:
		list := state.CreateTable(len(known), 0)
		for _, item := range known {
			list.Append(valueOf(state, item))
		}
		return list
	case map[string]any:
		table := state.CreateTable(0, len(known))
		for name, item := range known {
			table.RawSetString(name, valueOf(state, item))
		}
		return table
	default:
		return lua.LNil
	}
}
