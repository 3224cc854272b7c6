// Command planted puts faults that were fixed once back into a copy of the tree, one at a
// time, and expects the simulation to find each within a minute. It prints how long that
// took, and with how many steps the simulation shows the fault.
//
//	go run ./tools/planted                    all of them
//	go run ./tools/planted -only "fault 38"   those with this in their name or commit
package main
