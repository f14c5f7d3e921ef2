// argohealth runs a health check of Argo CD, a Lua script, as Argo CD itself does: by gopher-lua with the object as `obj`. It reads objects,
// one JSON document a line, and prints the status and the message of each, with a tab between.
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

// The libraries are those that Argo CD opens: neither files nor programs can be reached.
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
	answer, isTable := state.Get(-1).(*lua.LTable)
	if !isTable {
		return fmt.Errorf("the script answered a %s, not a table", state.Get(-1).Type())
	}
	_, err := fmt.Printf("%s\t%s\n", answer.RawGetString("status"), answer.RawGetString("message"))
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
