package perfdata

// Listed makes a File of samples of one event that were read from another format, and
// of the other records that belong to them.
func Listed(path string, a Attr, side []Side, samples []Sample) *File {
	f := &File{Path: path, Unknown: map[uint32]uint64{}, listedSide: side, listed: samples}
	f.addEvent(a, nil)
	return f
}

// The attr of such an event: which fields its samples have, loads and stores together.
const ListedFields = sampleIP | sampleTID | sampleTime | sampleAddr | sampleCPU | sampleWeight | sampleDataSrc
