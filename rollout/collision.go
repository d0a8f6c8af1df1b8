package rollout

// Collision names the two fields of a pool's spec that keep a rollout under this
// policy from ever ending, whatever the members do; empty if there are none.
// The engine then says FloorUnreachable and takes no member. That both budgets
// are written as 0, which pauses a rollout, is told by Zero as well.
func (p *Policy) Collision() (field, other string) {
	const (
		replicas, most      = "replicas", "maxMembers"
		unavailable, method = "update.maxUnavailable", "update.method"
		surge, floor        = "update.maxSurge", "update.minAvailable"
	)
	switch {
	case p.Desired == 0:
		return "", ""
	case p.MaxUnavailable == 0 && p.surge() == 0 && p.InPlace:
		return unavailable, method
	case p.MaxUnavailable == 0 && p.surge() == 0:
		return unavailable, surge
	case p.most() <= p.Desired-p.MaxUnavailable && p.MaxMembers < p.Desired:
		return most, replicas
	case p.most() <= p.Desired-p.MaxUnavailable:
		return most, surge
	case !p.HasFloor || p.MinAvailable < p.most():
		return "", ""
	case p.HasCeiling && p.MaxMembers <= p.MinAvailable:
		return floor, most
	case p.surge() == 0 && p.MinAvailable == p.Desired:
		return floor, surge
	}
	return floor, replicas
}
